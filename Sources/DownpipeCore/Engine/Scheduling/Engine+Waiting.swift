internal import Foundation

// Gates, timers, and what may come before its time: the network, room on the disk, descriptors.
extension Engine {
  // MARK: Gates

  /// Begins to listen to the gates that have been put in.
  func watchGates(in group: inout DiscardingTaskGroup) {
    let mailbox = context.mailbox
    for slot in gates.takeUnwatched() {
      group.addTask {
        await slot.stop.guarding {
          do {
            try await slot.gate.watch { rule in
              slot.latest.report(rule)
              mailbox.wake()
            }
          } catch is CancellationError {
          } catch {
            // The gate no longer knows: it does not veto by guess.
            slot.latest.report(.open)
            mailbox.wake()
          }
        }
      }
    }
  }

  /// Suspends what a closed gate does not allow any more.
  func enforceGates() {
    guard !gates.slots.isEmpty else { return }
    for run in slots.runs.values {
      if let candidate = slots.candidate(of: run), let reason = gates.reasonToStop(candidate) {
        run.stop(.gate(reason))
      }
    }
  }

  /// Where a gate has said something new, watchers of a waiting download learn why it waits now, and where there was no
  /// network there may be one.
  func heedGates() async {
    guard gates.takeNews() else { return }
    mode.mayLease = true
    await tellReasons()
    if !gates.isClosedForAll { await makeDue(waits.take(.network)) }
  }

  // MARK: Timers

  /// Sets a timer for the next download that becomes due. The ledger is only asked when there may be something new.
  func setTimer(in group: inout DiscardingTaskGroup) async {
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
        // After the time that was looked up to: what has become due since then must not be forgotten.
        due = try await store.nextDue(after: waits.lastLook ?? now)
        waits.lastLook = nil
      } catch {
        waits.mayHaveDelayed = true
        due = now.addingTimeInterval(1)
      }
    }
    arm(due, in: &group)
  }

  /// Sets a timer for a due time, unless there is one.
  func arm(_ due: Date?, in group: inout DiscardingTaskGroup) {
    // Before the date: where time passes between the two, the timer fires early, which does no harm, and never late.
    let now = time.now
    guard let due, let instant = waits.arm(due, at: time.date, now: now) else { return }
    group.addTask { await self.sleep(to: instant, until: due) }
  }

  private func sleep(to instant: Duration, until due: Date) async {
    let slept: Void? = try? await time.sleep(until: instant, purpose: .dueTime)
    waits.disarm(due)
    guard slept != nil else { return }
    waits.mayHaveDelayed = true
    mode.mayLease = true
    mode.ledgerRests = false
    mode.restTimerIsSet = false
    context.mailbox.wake()
  }

  // MARK: What is missing

  /// Remembers, or forgets, what a download that has ended its run is short of.
  func noteMissing(of run: Run) async {
    let record = run.record
    let available: Int64? = record.awaited == .disk ? await availableBytes() : nil
    guard slots.runs[run.id] == nil else { return }
    waits.note(record, available: available)
    if record.awaited == .disk { context.mailbox.wake() }
  }

  private func availableBytes() async -> Int64? { (try? await context.storage.availableBytes()) ?? nil }

  /// How often a full disk is looked at.
  private static let lookInterval: Duration = .seconds(2)

  /// Looks at the disk every now and then while a download waits for room.
  func watchForRoom() async {
    while waits.isRoomMissing {
      guard (try? await time.sleep(for: Self.lookInterval, purpose: .room)) != nil else { break }
      let room = await availableBytes()
      await makeDue(waits.take(withRoom: room, at: time.date))
    }
    waits.isWatchingForRoom = false
  }

  /// What waits for descriptors may have them when a run has given its own back.
  func makeDescriptorsDue() async {
    if waits.isAnythingMissing { await makeDue(waits.take(.descriptors)) }
  }

  private func makeDue(_ ids: [DownloadID]) async {
    guard !ids.isEmpty else { return }
    // Were it to fail, they would become due in their own time.
    _ = try? await store.transition(.ids(ids), .becameDue, at: time.date)
    mode.mayLease = true
    await publishStates(of: ids.filter(hub.isWatched))
    context.mailbox.wake()
  }

  // MARK: Idleness

  /// Returns when nothing waits and nothing runs, here or elsewhere.
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

  /// Lets go of those who wait for idleness, if there is nothing to do.
  func settleIdle() async {
    guard !idleWaiters.isEmpty else { return }
    if outbox.failures >= 5, let error = outbox.lastError { return idleWaiters.finish(.failure(error)) }
    guard slots.isEmpty, outbox.isEmpty, let counts = try? await store.counts(tag: nil) else { return }
    let unfinished = [.waiting, .transferring, .processing].reduce(0) { $0 + counts[$1, default: 0] }
    if unfinished == 0, slots.isEmpty, outbox.isEmpty { idleWaiters.finish(.success(())) }
  }
}
