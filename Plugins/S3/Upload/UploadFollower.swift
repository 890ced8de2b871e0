#if LIBCURL
  import Dispatch
  import DownpipeCore
  import DownpipePOSIX
  import Synchronization

  /// Uploads a download while its bytes arrive, part by part behind the contiguous front.
  ///
  /// A few parts are in memory: one that fills, and those that are sent. The transport does not wait for the storage: bytes
  /// that arrive faster are read back from the partial. If the upload fails, the step continues it with the whole file, and
  /// reports why.
  final class UploadFollower: TransferFollower {
    /// Downloads that are uploaded while they arrive; others are uploaded afterwards.
    static let places = FollowerPlaces(4)
    /// A larger part is read from the file, and not kept in memory.
    static let largestPart: Int64 = 16 << 20

    private struct State {
      var filling: [UInt8] = []
      var number = 1
      var task: Task<PartUpload?, any Error>?
      var isOver = false
      var place: FollowerPlaces.Place?
    }

    let key: String
    private let plan: PartPlan
    private let begin: @Sendable () async throws -> PartUpload?
    private let state: Mutex<State>
    private let parts: AsyncStream<(Int, MemoryBody)>
    private let filled: AsyncStream<(Int, MemoryBody)>.Continuation
    /// Has a signal for each part that may be handed over.
    private let room: DispatchSemaphore
    /// Has a signal when nothing is being sent any more.
    private let hasEnded = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - plan: The parts.
    ///   - begin: Begins the upload, or continues one of the same plan; `nil` if the object is there already.
    init(
      key: String, _ plan: PartPlan, partsAtOnce: Int, _ place: FollowerPlaces.Place,
      begin: @escaping @Sendable () async throws -> PartUpload?
    ) {
      self.key = key
      self.plan = plan
      self.begin = begin
      state = Mutex(State(place: place))
      // Bounded by `room`.
      (parts, filled) = AsyncStream<(Int, MemoryBody)>.makeStream()
      // A semaphore must not be released with less than it was made with.
      room = DispatchSemaphore(value: 0)
      for _ in 0..<partsAtOnce { room.signal() }
    }

    deinit { discard() }

    func take(_ bytes: RawSpan) throws {
      var rest = bytes
      while !rest.isEmpty {
        let full = try state.withLock { state -> (Int, [UInt8])? in
          let range = plan.range(of: state.number)
          let size = range.upperBound - range.lowerBound
          // Parts grow if the size is not known: the step continues from the file.
          guard size <= Self.largestPart, !state.isOver else { throw CancellationError() }
          if state.filling.isEmpty { state.filling.reserveCapacity(Int(size)) }
          let part = rest.extracting(first: Int(size) - state.filling.count)
          part.withUnsafeBytes { state.filling.append(contentsOf: $0) }
          rest = rest.extracting(droppingFirst: part.byteCount)
          guard state.filling.count == size else { return nil }
          defer { (state.filling, state.number) = ([], state.number + 1) }
          return (state.number, state.filling)
        }
        if let full { try hand(full.0, full.1) }
      }
    }

    /// Waits for room, and hands a part over. The storage may be slow: a pause of the download does not wait for it.
    private func hand(_ number: Int, _ bytes: [UInt8], isCancelled: () -> Bool = { Task.isCancelled }) throws {
      start()
      while room.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
        guard !isCancelled(), !state.withLock(\.isOver) else { throw CancellationError() }
      }
      guard !state.withLock(\.isOver), number <= PartPlan.mostParts else {
        // For the next call.
        room.signal()
        throw CancellationError()
      }
      filled.yield((number, MemoryBody(bytes: bytes)))
    }

    /// No more parts come.
    private func fail() {
      state.withLock { $0.isOver = true }
      filled.finish()
    }

    private func start() {
      state.withLock { state in
        guard state.task == nil, !state.isOver else { return }
        state.task = Task { [begin, parts, room, hasEnded] in
          defer {
            // A thread that waits for room finds out that there is no use in it.
            self.fail()
            room.signal()
            hasEnded.signal()
          }
          guard let upload = try await begin() else { return nil }
          try await withThrowingTaskGroup(of: Void.self) { group in
            for await (number, body) in parts {
              group.addTask {
                // With a failure, those who wait for room see it, and no more parts come.
                defer { room.signal() }
                do { try await upload.send(number, body) } catch {
                  self.fail()
                  throw error
                }
              }
            }
            try await group.waitForAll()
          }
          return upload
        }
      }
    }

    /// Sends the last bytes and waits for the end.
    ///
    /// - Returns: The upload with all its parts; `nil` if the step has to read the file.
    /// - Throws: `CancellationError`.
    func finish(key: String) async throws -> PartUpload? {
      let last = state.withLock { state -> (Int, [UInt8])? in
        // A small file, or a step before has changed the name.
        guard state.task != nil, !state.isOver, key == self.key else { return nil }
        return (state.number, state.filling)
      }
      guard let last else { return nil }
      if !last.1.isEmpty {
        let isHanded: Void? = try? await BlockingThreads.run { [self] cancellation in
          try hand(last.0, last.1) { cancellation.isCancelled }
        }
        try Task.checkCancellation()
        if isHanded == nil { return nil }
      }
      filled.finish()
      guard let task = state.withLock({ $0.task }) else { return nil }
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
        defer { (state.isOver, state.task, state.place, state.filling) = (true, nil, nil, []) }
        return state.task
      }
      filled.finish()
      guard let task else { return }
      task.cancel()
      hasEnded.wait()
    }
  }
#endif
