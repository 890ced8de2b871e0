import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

/// Runs a suite that is expected to fail and returns the names of the broken rules.
func brokenRules(_ run: () async throws -> Void) async throws -> Set<String> {
  do {
    try await run()
    return []
  } catch let failure as ConformanceFailure {
    return Set(failure.brokenRules.map(\.rule))
  }
}

@Suite(.endsHangs)
struct ConformanceReportTests {
  private struct Odd: Error {}

  @Test func nothingBrokenThrowsNothing() async throws {
    let report = ConformanceReport("Suite")
    await report.check("one", "it holds") {}
    try report.finish()
  }

  @Test func everyBrokenRuleIsThrownAtOnce() async throws {
    let report = ConformanceReport("Suite")
    await report.check("one", "the first holds") { try expect(false, "it does not") }
    await report.check("two", "the second holds") {}
    await report.check("three", "the third holds") { throw Odd() }
    let failure = try #require(throws: ConformanceFailure.self) { try report.finish() }
    #expect(failure.suite == "Suite")
    #expect(failure.brokenRules.map(\.rule) == ["one", "three"])
    #expect(
      failure.description == """
        Suite: 2 rules are broken
          ✗ one
              expected: the first holds
              happened: it does not
          ✗ three
              expected: the third holds
              happened: \(failure.brokenRules[1].happened)
        """)
    #expect(failure.brokenRules[1].happened.contains("Odd"))
  }

  @Test("a rule that depends on a broken rule is not checked")
  func rulesBuildOnOthers() async throws {
    let report = ConformanceReport("Suite", excluding: [.init("other", because: "it does not apply")])
    let ran = Watched<[String]>([])
    func check(_ rule: String, needs: [String] = [], holds: Bool = true) async {
      await report.check(rule, "\(rule) holds", needs: needs) {
        ran.update { $0.append(rule) }
        if !holds { throw Odd() }
      }
    }
    await check("base", holds: false)
    await check("on base", needs: ["base"])
    await check("on that", needs: ["on base"])
    await check("alone")
    report.build(on: "alone", "other")
    await check("on alone", needs: ["alone"])
    report.build(on: "base")
    await check("later")
    #expect(ran.value == ["base", "alone", "on alone"])
    await check("other")
    let failure = try #require(throws: ConformanceFailure.self) { try report.finish() }
    #expect(failure.brokenRules.map(\.rule) == ["base"])
    #expect(failure.unchecked == ["on base", "on that", "later"])
    #expect(
      failure.description.hasSuffix("\n  not checked because they depend on broken rules: on base, on that, later"))
  }

  @Test func excludedRulesAreNotRun() async throws {
    let report = ConformanceReport("Suite", excluding: [.init("one", because: "it does not apply")])
    let ran = Watched(false)
    await report.check("one", "it holds") {
      ran.update { $0 = true }
      throw Odd()
    }
    try report.finish()
    #expect(!ran.value)
  }

  @Test func rulesThatDoNotApplyAreKnownButNotRun() async throws {
    let report = ConformanceReport("Suite", excluding: [.init("one", because: "it does not apply")])
    await report.check("one", "it holds", when: false) { throw Odd() }
    await report.check("two", "it holds", when: false) { throw Odd() }
    try report.finish()
  }

  @Test(arguments: [
    (ConformanceExclusion("none", because: "it does not apply"), "there is no such rule; there are: one"),
    (ConformanceExclusion("one", because: " "), "its reason is empty"),
  ])
  func wrongExclusionsAreErrors(_ exclusion: ConformanceExclusion, _ happened: String) async throws {
    let report = ConformanceReport("Suite", excluding: [exclusion])
    await report.check("one", "it holds") {}
    let failure = try #require(throws: ConformanceFailure.self) { try report.finish() }
    #expect(failure.brokenRules.map(\.rule) == [exclusion.rule])
    #expect(failure.brokenRules.first?.happened == happened)
  }

  @Test func aRuleThatHangsIsBrokenAtTheLimit() async throws {
    let time = VirtualTime()
    let never = Watched(false)
    let report = ConformanceReport("Suite", limit: .seconds(10), time: time)
    async let checked: Void = report.check("hangs", "it ends") {
      // A separate task, which does not notice the cancellation.
      await Task { await never.wait { $0 } }.value
    }
    let clock = Task {
      while !Task.isCancelled { await time.advanceToNextSleeper() }
    }
    await checked
    clock.cancel()
    await clock.value
    #expect(time.now >= .seconds(10))
    let failure = try #require(throws: ConformanceFailure.self) { try report.finish() }
    #expect(failure.brokenRules.first?.happened == "it did not end within 10.0 seconds")
    never.update { $0 = true }
  }

  @Test func wrongErrorsAreNamed() async throws {
    await #expect(throws: Deviation.self) { try await expectError(when: "x") {} }
    await #expect(throws: Deviation.self) { try await expectError(when: "x") { throw Odd() } }
    await #expect(throws: Deviation.self) {
      try await expectError(.noSpace, when: "x") { throw DownloadError(.network, "y") }
    }
    try await expectError(.noSpace, .network, when: "x") { throw DownloadError(.network, "y") }
  }
}
