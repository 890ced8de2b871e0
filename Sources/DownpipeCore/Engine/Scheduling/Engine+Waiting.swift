internal import Foundation
internal import Synchronization

// Gates, timers, and resources that may become available before a due time: the network, disk space, descriptors.
extension Engine {
  // MARK: Gates

  /// Starts to watch new gates.
  func watchGates() {
    let mailbox = context.mailbox
    for watched in gates.takeUnwatched() {
      begin {
        await watched.stop.guarding {
          do {
            try await watched.gate.watch { rule in
              watched.latest.report(rule)
              mailbox.wake()
            }
          } catch is CancellationError {
          } catch {
            // A gate that has failed no longer knows, and a gate must not close by guess.
            watched.latest.report(.open)
            mailbox.wake()
          }
        }
      }
    }
  }

  /// Suspends the runs that a closed gate no longer permits.
  func enforceGates() {
    mode.mustEnforceGates = false
    for run in slots.runs.values { enforceGates(for: run) }
  }

  /// Updates the sizes by which gates and limits decide.
  /// - Returns: Whether any has changed.
  @discardableResult
  func learnSizes() -> Bool {
    guard slots.learnSizes() else { return false }
    mode.mustEnforceGates = true
    return true
  }

  /// Suspends a run that a closed gate does not permit.
  func enforceGates(for run: Run) {
    guard !gates.watched.isEmpty, options.sabotage != .runsPastGates, let candidate = slots.candidate(of: run),
      let reason = gates.reasonToStop(candidate)
    else { return }
    run.stop(.gate(reason))
  }

  // MARK: Timers

  /// Sets a timer for the next due time. The ledger is only read if there may be a new one.
  func setTimer() async {
    guard waits.mayHaveDelayed || mode.ledgerRests, !mode.isStopping else { return }
    waits.mayHaveDelayed = false
    let now = time.date
    var due: Date?
    if mode.ledgerRests {
      guard !mode.restTimerIsSet else { return }
      mode.restTimerIsSet = true
      due = now.addingTimeInterval(1)
    } else {
      do {
        // The search starts at the time of the last lease, so that downloads that became due since are not missed.
        // What is due within a microsecond counts as due, as for a lease: a timer for it would fire at once, again and again.
        due = try await store.nextDue(after: waits.lastLook ?? now.addingTimeInterval(1e-6))
        waits.lastLook = nil
      } catch {
        waits.mayHaveDelayed = true
        due = now.addingTimeInterval(1)
      }
    }
    arm(due)
  }

  /// Sets a timer for the first of the instants at which admission policies are to be asked again.
  func armAdmission(_ dues: [Duration]) {
    waits.noteAdmissions(dues)
    // The instant may have come while the ledger was leasing.
    if waits.passAdmissions(through: time.now) { askAdmissionAgain() }
    guard let due = waits.nextAdmission, mode.admissionDue.map({ due < $0 }) ?? true else { return }
    mode.admissionDue = due
    begin { await self.askAdmission(at: due) }
  }

  private func askAdmission(at due: Duration) async {
    let slept: Void? = try? await time.sleep(until: due, purpose: .dueTime)
    if mode.admissionDue == due { mode.admissionDue = nil }
    guard slept != nil else { return }
    _ = waits.passAdmissions(through: due)
    askAdmissionAgain()
  }

  private func askAdmissionAgain() {
    mode.mayLease = true
    reasons.mayHaveChanged = true
    context.mailbox.wake()
  }

  /// Sets a timer for a due time, unless there is one already.
  func arm(_ due: Date?) {
    // Read before the date: if time passes between the two, the timer fires early, which does no harm, and never late.
    let now = time.now
    guard let due, let instant = waits.arm(due, at: time.date, now: now) else { return }
    begin { await self.sleep(until: instant) }
  }

  private func sleep(until instant: Duration) async {
    let slept: Void? = try? await time.sleep(until: instant, purpose: .dueTime)
    waits.disarm(instant)
    guard slept != nil else { return }
    waits.mayHaveDelayed = true
    mode.mayLease = true
    mode.ledgerRests = false
    mode.restTimerIsSet = false
    context.mailbox.wake()
  }

  // MARK: Missing resources

  /// Records the resource that a download waits for after its run, if any.
  func noteMissing(of run: Run) {
    let (available, needed) = run.state.withLock { ($0.roomAtFailure, $0.neededRoom) }
    run.read { waits.note($0, available: available, needed: needed) }
    if waits.isRoomMissing { context.mailbox.wake() }
  }

  /// The time between two checks of a full disk.
  private static let roomInterval: Duration = .seconds(1)

  /// Checks the disk regularly while a download waits for space.
  func watchForRoom() async {
    while waits.isRoomMissing {
      guard (try? await time.sleep(for: Self.roomInterval, purpose: .room)) != nil else { break }
      let room = await context.availableBytes()
      waits.end(withRoom: room, at: time.date)
      context.mailbox.wake()
    }
    waits.isWatchingForRoom = false
  }

  /// Lets downloads start whose resource is available.
  func makeDue() async {
    let ids = waits.takeDue()
    guard !ids.isEmpty else { return }
    // If this fails, the downloads start at their due times.
    _ = try? await store.transition(.ids(ids), .becameDue, at: time.date)
    noteChange(of: ids)
    await publishChanges()
    mode.mayLease = true
  }

  // MARK: Idleness

  /// Returns when no download of the ledger runs or can start, here or with another owner.
  func waitUntilIdle() async throws {
    let number = idleWaiters.makeNumber()
    let result: Result<Void, any Error> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled {
          continuation.resume(returning: .failure(CancellationError()))
        } else if mode.isStopping {
          continuation.resume(returning: .failure(DownloadError.shutDown))
        } else {
          idleWaiters.insert(continuation, number)
          context.mailbox.wake()
        }
      }
    } onCancel: {
      context.mailbox.post(cancelledWaiter: number)
    }
    try result.get()
  }

  /// Resumes the idle waiters, if no download waits or runs.
  func settleIdle() async {
    guard !idleWaiters.isEmpty else { return }
    if outbox.failures >= 5, let error = outbox.lastError { return idleWaiters.finish(.failure(error)) }
    // The answer says nothing about what happens before a later call.
    let waiting = idleWaiters.numbers
    guard slots.isEmpty, outbox.isEmpty, let isBusy = try? await store.isBusy() else { return }
    if options.sabotage == .idleWithoutSecondLook { return idleWaiters.finish(.success(())) }
    if !isBusy, slots.isEmpty, outbox.isEmpty { idleWaiters.finish(waiting, .success(())) }
  }
}
