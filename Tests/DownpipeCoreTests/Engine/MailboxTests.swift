import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// The messages to the loop.
@Suite(.endsHangs)
struct MailboxTests {
  private let mailbox = Mailbox()

  /// Carries out what was called.
  private func answer(_ calls: [Mailbox.CallerMessage], by fixture: RunFixture) async {
    var state = EngineState(fixture.pipeline, sessions: fixture.stages.sessions, fixture.context)
    state.due.remove(.reclaim)
    let instant = EngineState.Instant(now: fixture.time.now, date: fixture.time.date)
    for case .call(let call) in calls { state.receive(.called(call), at: instant) }
    var next = state.nextJob(at: instant)
    while let job = next {
      let conclude = await job.perform(fixture.context)
      next = conclude(&state, instant) ?? state.nextJob(at: instant)
    }
    for case .answer(let answers) in state.takeActions() { for answer in answers { answer() } }
  }

  private func isShutDown(_ error: any Error) -> Bool { (error as? DownloadError)?.code == .shutDown }

  @Test func mailIsReadOnceAndInOrder() async throws {
    let fixture = try await RunFixture()
    let runs = try (0..<3).map { try fixture.run(DownloadID("d\($0)")) }
    for run in runs { mailbox.post(.stopped(.pause), of: run) }
    mailbox.post(cleanedUp: runs[0])
    let mail = await mailbox.next()
    #expect(mail.outcomes.map(\.run.id) == ["d0", "d1", "d2"])
    #expect(mail.cleanedUp.map(\.id) == ["d0"])
    #expect(!mail.hasEndedTurn && mail.needsTurn)
    mailbox.wake(forTurn: false)
    let nothing = await mailbox.next()
    #expect(!nothing.needsTurn)
    mailbox.postEndOfTurn()
    #expect(await mailbox.next().hasEndedTurn)
    #expect(nothing.outcomes.isEmpty && nothing.cleanedUp.isEmpty && nothing.rules.isEmpty)
  }

  @Test("a gate that was closed for a moment is news, although it is open again")
  func rulesOfGates() async {
    for rule in [GateRule.closed("a"), .open, .open, .closed("b"), .closed("b"), .open] { mailbox.post(rule, of: 1) }
    mailbox.post(.closed("c"), of: 2)
    let rules = await mailbox.next().rules
    #expect(rules.count == 2 && rules[1]?.count == 2 && rules[2]?.count == 1)
    #expect(rules[1]?.first?.isSame(as: .closed("b")) == true && rules[1]?.last?.isSame(as: .open) == true)
    #expect(mailbox.takeRules().isEmpty)
  }

  @Test("no message is lost between a post and the next read", arguments: 0..<20)
  func nothingIsLost(round: Int) async {
    let (posters, each) = (8, 500)
    let seen = await withTaskGroup(of: Void.self) { group -> [Int] in
      for poster in 0..<posters {
        group.addTask {
          for index in 0..<each { mailbox.post(.open, of: poster * each + index) }
        }
      }
      var seen: [Int] = []
      while seen.count < posters * each { seen += await mailbox.next().rules.keys }
      return seen
    }
    #expect(Set(seen).count == posters * each)
    for poster in 0..<posters {
      let own = seen.filter { $0 / each == poster }
      #expect(own == own.sorted(), "the messages of one task are read in order")
    }
  }

  @Test("each command is carried out once while one task reads and others post", arguments: 0..<10)
  func commandsAreNotLost(round: Int) async throws {
    let fixture = try await RunFixture()
    let done = Watched(0)
    try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<200 {
        group.addTask {
          try await mailbox.perform { _, _ in
            done.update { $0 += 1 }
            return number
          }
        }
      }
      while done.value < 200 {
        await answer(mailbox.next().calls, by: fixture)
      }
      var answers: Set<Int> = []
      for try await answer in group { answers.insert(answer) }
      #expect(answers == Set(0..<200))
    }
    #expect(done.value == 200)
  }

  @Test func whatACommandThrowsIsItsAnswer() async throws {
    let fixture = try await RunFixture()
    let command = Task { try await mailbox.perform { _, _ in throw DownloadError(.ledger, "no") } }
    await answer(mailbox.next().calls, by: fixture)
    await #expect { try await command.value } throws: { ($0 as? DownloadError)?.code == .ledger }
  }

  @Test func commandsAreRefusedOnceItIsClosed() async throws {
    let waiting = Task { try await mailbox.perform { _, _ in 1 } }
    while !mailbox.hasCalls { await Task.yield() }
    mailbox.close()
    await #expect { try await waiting.value } throws: { isShutDown($0) }
    await #expect { try await mailbox.perform { _, _ in 2 } } throws: { isShutDown($0) }
    #expect(!mailbox.hasCalls)
  }

  @Test("a command is either carried out or rejected when the mailbox closes meanwhile", arguments: 0..<20)
  func closingMeanwhile(round: Int) async throws {
    let fixture = try await RunFixture()
    let answers = await withTaskGroup(of: Bool.self) { group -> Int in
      for _ in 0..<50 { group.addTask { (try? await mailbox.perform { _, _ in }) != nil } }
      group.addTask {
        await answer(mailbox.next().calls, by: fixture)
        mailbox.close()
        return false
      }
      var count = 0
      for await _ in group { count += 1 }
      return count
    }
    #expect(answers == 51)
  }
}
