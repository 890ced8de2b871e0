#if LIBCURL
  import Dispatch
  import DownpipeCore
  import Synchronization

  /// Uploads a download while its bytes arrive, part by part behind the contiguous front.
  ///
  /// No part is in memory: each is read back from the partial, once for its checksum and once for its request. The transport
  /// does not wait for the storage. If the upload fails, the step continues it with the whole file, and reports why.
  final class UploadFollower: TransferFollower {
    private struct State {
      /// How many bytes have arrived.
      var position: Int64 = 0
      /// The next part.
      var number = 1
      var task: Task<PartUpload?, any Error>?
      var note: UploadNote?
      var isOver = false
      /// How many bytes were sent, and who hears of it while the step waits for the rest.
      var sent: Int64 = 0
      var report: (@Sendable (Int64) -> Void)?
    }

    let key: String
    private let plan: PartPlan
    private let partsAtOnce: Int
    private let readBack: ProcessingContext.ReadBack
    private let begin: @Sendable () async throws -> PartUpload?
    private let state = Mutex(State())
    private let parts: AsyncStream<Int>
    private let arrived: AsyncStream<Int>.Continuation
    /// Has a signal when nothing is being sent any more.
    private let hasEnded = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - plan: The parts.
    ///   - readBack: Reads bytes that have arrived.
    ///   - begin: Begins the upload, or continues one of the same plan; `nil` if the object is there already.
    init(
      key: String, _ plan: PartPlan, partsAtOnce: Int, _ readBack: @escaping ProcessingContext.ReadBack,
      begin: @escaping @Sendable () async throws -> PartUpload?
    ) {
      self.key = key
      self.plan = plan
      self.partsAtOnce = partsAtOnce
      self.readBack = readBack
      self.begin = begin
      // Bounded by the largest number of parts.
      (parts, arrived) = AsyncStream<Int>.makeStream()
    }

    deinit { discard() }

    func take(_ bytes: RawSpan) throws {
      let complete = try state.withLock { state in
        guard !state.isOver else { throw CancellationError() }
        state.position += Int64(bytes.byteCount)
        let first = state.number
        while plan.range(of: state.number).upperBound <= state.position { state.number += 1 }
        guard state.number <= PartPlan.mostParts + 1 else { throw CancellationError() }
        return first..<state.number
      }
      guard !complete.isEmpty else { return }
      start()
      for number in complete { arrived.yield(number) }
    }

    /// No more parts come.
    private func fail() {
      state.withLock { $0.isOver = true }
      arrived.finish()
    }

    private func start() {
      state.withLock { state in
        guard state.task == nil, !state.isOver else { return }
        state.task = Task { [begin, hasEnded] in
          defer {
            // What arrives later is of no use to it.
            self.fail()
            hasEnded.signal()
          }
          guard let upload = try await begin() else { return nil }
          self.state.withLock { $0.note = upload.note }
          try await send(upload)
          return upload
        }
      }
    }

    private func send(_ upload: PartUpload) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        var sending = 0
        for await number in parts {
          if sending == partsAtOnce {
            try await group.next()
            sending -= 1
          }
          // The last part may be shorter.
          let range = plan.range(of: number).clamped(to: 0..<state.withLock(\.position))
          group.addTask { [self] in
            try await upload.send(number, RangeBody(range: range, source: "the partial", read: readBack))
            state.withLock { state in
              state.sent += range.upperBound - range.lowerBound
              state.report?(state.sent)
            }
          }
          sending += 1
        }
        try await group.waitForAll()
      }
    }

    /// The note of the upload that was begun, which may be newer than the one that the step was given.
    var note: UploadNote? { state.withLock(\.note) }

    /// Sends the last bytes and waits for the end.
    ///
    /// - Parameter report: Called with the number of bytes that were sent.
    /// - Returns: The upload with all its parts; `nil` if the step has to read the file.
    /// - Throws: `CancellationError`.
    func finish(key: String, report: @escaping @Sendable (Int64) -> Void) async throws -> PartUpload? {
      let task = state.withLock { state -> Task<PartUpload?, any Error>? in
        // A small file, or a step before has changed the name.
        guard let task = state.task, !state.isOver, key == self.key else { return nil }
        state.report = report
        if plan.range(of: state.number).lowerBound < state.position {
          guard state.number <= PartPlan.mostParts else { return nil }
          arrived.yield(state.number)
        }
        return task
      }
      arrived.finish()
      guard let task else { return nil }
      let result = await withTaskCancellationHandler {
        await task.result
      } onCancel: {
        task.cancel()
      }
      try Task.checkCancellation()
      return try? result.get()
    }

    /// Ends the requests. What was uploaded stays, for the next run of the download.
    func discard() {
      let task = state.withLock { state -> Task<PartUpload?, any Error>? in
        defer { (state.isOver, state.task, state.report) = (true, nil, nil) }
        return state.task
      }
      arrived.finish()
      guard let task else { return }
      task.cancel()
      hasEnded.wait()
    }
  }
#endif
