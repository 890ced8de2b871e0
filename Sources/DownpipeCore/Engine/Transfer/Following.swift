internal import Synchronization

/// Passes the bytes of a transfer to the followers of its first steps while they arrive.
///
/// The bytes are read back from the partial, mostly from the system's cache, on threads for blocking work: the
/// transport is not slowed down, and the order of arrival and earlier transfers make no difference. If bytes that were
/// read are changed, the followers are dropped, and the steps read their input as without followers.
final class Following: Sendable {
  private struct Follower {
    /// The position of the step in the chain.
    let index: Int
    let step: String
    let digests: [FileDigest]
    let follower: any TransferFollower
  }

  private struct State {
    var partial: FollowedPartial?
    var followers: [Follower] = []
    /// The number of bytes that the followers have taken.
    var position: Int64 = 0
  }

  private let run: Run
  private let state = Mutex(State())

  init(_ run: Run) { self.run = run }

  /// Smaller files are read by their steps: reading them again costs less than a task.
  private static let smallest: Int64 = 2 << 20
  /// The number of bytes that are read at a time; they fit in the cache of a core.
  private static let blockSize = 256 << 10
  /// The number of new bytes for which the followers are woken.
  private static let bytesBetweenWakes: Int64 = 1 << 20

  // MARK: The transfer

  /// Returns the partial to which the transfer writes.
  func watch(_ partial: any Partial) -> any Partial {
    guard !run.pipeline.steps.isEmpty else { return partial }
    let followed = FollowedPartial(partial)
    state.withLock { $0.partial = followed }
    return followed
  }

  /// The storage's own partial for the partial of the transfer.
  func base(of partial: any Partial) -> any Partial { state.withLock { $0.partial?.base } ?? partial }

  /// Receives one or more bodies, while the followers take what arrives. It returns when no follower is taking bytes.
  ///
  /// The checkpoint's ranges must be the bytes on disk when it is called.
  func receiving(_ receive: () async throws -> Void) async throws {
    guard let partial = begin() else { return try await receive() }
    try await receiving(partial, receive)
  }

  // Not inlined: a child task needs room in the frame, which most downloads need not have.
  @inline(never)
  private func receiving(_ partial: FollowedPartial, _ receive: () async throws -> Void) async throws {
    // Cancelled and awaited at the end of the scope.
    async let _: Void = follow(partial)
    try await receive()
  }

  /// Prepares the followers, unless they have been prepared for an earlier body; `nil` if there are none.
  private func begin() -> FollowedPartial? {
    let (partial, hasFollowers) = state.withLock { ($0.partial, !$0.followers.isEmpty) }
    guard let partial else { return nil }
    if hasFollowers, partial.isUnchanged { return partial }
    let (ranges, total) = run.read { ($0.checkpoint.ranges, $0.checkpoint.total.bytes) }
    let followers = total.map { $0 >= Self.smallest } ?? true ? makeFollowers() : []
    state.withLock { state in
      state.followers = followers
      state.position = 0
    }
    guard !followers.isEmpty else { return nil }
    partial.begin(with: ranges)
    return partial
  }

  /// The followers of the first steps, whose input is the partial itself.
  private func makeFollowers() -> [Follower] {
    var followers: [Follower] = []
    for (index, link) in run.chain.links.enumerated() where !link.isDecoder {
      let context = run.read { record in
        record.request.steps.contains(link.step.name)
          ? ProcessingContext(
            request: record.request, workspace: nil, digests: link.digests, durability: run.storage.durability,
            wasInterrupted: record.wasInterrupted, lastModified: record.checkpoint.validator?.lastModified) : nil
      }
      guard let context, link.step.isNeeded(context) else { continue }
      guard let follower = link.step.follower(context) else { break }
      followers.append(Follower(index: index, step: link.step.name, digests: link.digests, follower: follower))
    }
    return followers
  }

  // MARK: While bytes arrive

  private func follow(_ partial: FollowedPartial) async {
    let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    partial.notify(wake, at: state.withLock { $0.position } + Self.bytesBetweenWakes)
    for await _ in wakes {
      // No thread waits for bytes: there may be thousands of slow transfers.
      await withTaskExecutorPreference(BlockingExecutor.shared) { takeBlocks(of: partial) }
      let position = state.withLock { $0.followers.isEmpty ? nil : $0.position }
      guard let position else { return }
      partial.notify(wake, at: position + Self.bytesBetweenWakes)
    }
  }

  /// Reads all bytes that can be read, or until the task is cancelled.
  private func takeBlocks(of partial: FollowedPartial) {
    withUnsafeTemporaryAllocation(byteCount: Self.blockSize, alignment: 64) { buffer in
      while !Task.isCancelled {
        let (position, followers) = state.withLock { ($0.position, $0.followers) }
        guard !followers.isEmpty, let count = partial.claim(from: position, atMost: buffer.count) else {
          return drop()
        }
        if count == 0 { return }
        let block = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        var span = block.mutableBytes
        // If the bytes cannot be read, the step reads them again and reports why.
        guard let got = try? partial.read(at: position, into: &span), got == count else { return drop() }
        let bytes = UnsafeRawBufferPointer(block).bytes
        let willing = followers.filter { (try? $0.follower.take(bytes)) != nil }
        state.withLock { state in
          state.followers = willing
          state.position += Int64(count)
        }
      }
    }
  }

  private func drop() { state.withLock { $0.followers = [] } }

  // MARK: The step

  /// Returns the follower of a step if it has taken exactly the bytes of the partial, after it has taken those that are
  /// left; `nil` if the step has to read its input.
  /// - Throws: `CancellationError`.
  func follower(of link: RunChain.Link, at index: Int, input: Artifact) async throws -> (any TransferFollower)? {
    let (partial, isFollowed) = state.withLock { state in
      (state.partial, state.followers.contains { $0.index == index })
    }
    guard let partial, isFollowed else { return nil }
    await withTaskExecutorPreference(BlockingExecutor.shared) { takeBlocks(of: partial) }
    try Task.checkCancellation()
    guard partial.isUnchanged, let size = try? partial.size(), input.size == .known(size) else { return nil }
    return state.withLock { state in
      guard state.position == size else { return nil }
      return state.followers.first {
        $0.index == index && $0.step == link.step.name && $0.digests == link.digests
      }?.follower
    }
  }
}
