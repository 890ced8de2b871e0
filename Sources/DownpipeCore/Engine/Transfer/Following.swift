internal import Synchronization

/// Passes the bytes of a transfer to the followers of its first steps while they arrive.
///
/// Bytes that arrive in order are copied once, in memory, and others are read back from the partial: those that were on
/// disk before, that arrived in another order, or faster than the followers take them. Followers work on threads for
/// blocking work. The transport is not slowed down, and the order of arrival and earlier transfers make no difference. If
/// bytes that were taken are changed, the followers are discarded, and the steps read their input as without followers.
///
/// It owns the followers: each one is discarded when it is not needed any more, at the latest in ``end()``.
final class Following: Sendable {
  private struct Follower {
    /// The position of the step in the chain.
    let index: Int
    let step: String
    let digests: [FileDigest]
    /// Whether it writes to the workspace.
    let writes: Bool
    let follower: any TransferFollower
  }

  private struct State {
    var partial: FollowedPartial?
    var followers: [Follower] = []
    /// The number of bytes that the followers have taken.
    var position: Int64 = 0
    /// Whether followers may write. Not after the disk was full: the transfer needs the space.
    var mayWrite = true
    /// Whether the download has, or may have, a workspace.
    var hasWorkspace = false
    /// Whether followers that write were discarded, so that there is space again.
    var hasGivenRoom = false
  }

  private let run: Run
  private let state = Mutex(State())

  init(_ run: Run) { self.run = run }

  /// Smaller files are read by their steps: reading them again costs less than a task.
  private static let smallest: Int64 = 2 << 20
  /// The number of new bytes for which the followers are woken.
  private static let bytesBetweenWakes: Int64 = 1 << 20
  /// What gates that protect a disk must leave beside the missing bytes of the running downloads, so that a follower may
  /// write.
  private static let room: Int64 = 64 << 20

  // MARK: The transfer

  /// Returns the partial to which the transfer writes.
  func watch(_ partial: any Partial) -> any Partial {
    guard !run.pipeline.steps.isEmpty else { return partial }
    let followed = FollowedPartial(partial, pool: run.context.blocks)
    state.withLock { $0.partial = followed }
    return followed
  }

  /// The storage's own partial for the partial of the transfer.
  func base(of partial: any Partial) -> any Partial { followed?.base ?? partial }

  private var followed: FollowedPartial? { state.withLock { $0.partial } }

  /// Whether the download has, or may have, a workspace.
  var hasWorkspace: Bool { state.withLock { $0.hasWorkspace } }

  /// Receives one body, or the segments of one file, while the followers take what arrives. It returns when no follower is taking bytes.
  ///
  /// The checkpoint's ranges must be the bytes on disk when it is called.
  func receiving(_ receive: () async throws -> Void) async throws {
    guard let partial = followed, await begin(partial) else { return try await receive() }
    try await receiving(partial, receive)
  }

  // Not inlined: a child task needs room in the frame, which most downloads need not have.
  @inline(never)
  private func receiving(_ partial: FollowedPartial, _ receive: () async throws -> Void) async throws {
    // Cancelled and awaited at the end of the scope.
    async let _: Void = follow(partial)
    try await receive()
  }

  /// Prepares the followers, unless they have been prepared for an earlier body; `false` if there are none.
  @inline(never)
  private func begin(_ partial: FollowedPartial) async -> Bool {
    // Followers that have refused the bytes before are not asked again.
    if partial.isUnchanged { return state.withLock { !$0.followers.isEmpty } }
    // Those of the earlier bytes, which may write where the new ones do.
    await end()
    let (ranges, total) = run.read { ($0.checkpoint.ranges, $0.checkpoint.total.bytes) }
    let followers = total.map { $0 >= Self.smallest } ?? true ? await makeFollowers(of: partial) : []
    state.withLock { state in
      state.followers = followers
      state.position = 0
    }
    guard !followers.isEmpty else { return false }
    partial.begin(with: ranges)
    return true
  }

  /// The followers of the first steps, whose input is the partial itself.
  private func makeFollowers(of partial: FollowedPartial) async -> [Follower] {
    var followers: [Follower] = []
    for (index, link) in run.chain.links.enumerated() {
      // What follows a decoder takes other bytes.
      guard !link.isDecoder else { break }
      let step = link.step
      guard let question = context(for: link, of: partial, workspace: nil), step.isNeeded(question) else { continue }
      var workspace: String?
      if step.followerWrites {
        workspace = await self.workspace(beside: partial)
        guard workspace != nil else { break }
      }
      guard let context = context(for: link, of: partial, workspace: workspace), let follower = step.follower(context)
      else { break }
      followers.append(
        Follower(
          index: index, step: step.name, digests: link.digests, writes: step.followerWrites, follower: follower))
      // The next step takes what this one writes.
      if step.followerWrites { break }
    }
    return followers
  }

  /// The context for a follower; `nil` if the request has not selected the step.
  private func context(
    for link: RunChain.Link, of partial: FollowedPartial, workspace: String?
  ) -> ProcessingContext? {
    run.read { record in
      record.request.steps.contains(link.step.name)
        ? ProcessingContext(
          request: record.request, workspace: workspace, digests: link.digests,
          priorNote: record.steps.note(of: link.step.name), durability: run.storage.durability,
          wasInterrupted: record.wasInterrupted, bytesReceived: record.checkpoint.total.bytes,
          lastModified: record.checkpoint.validator?.lastModified, downloadedName: record.nameOfBytes,
          mediaType: record.checkpoint.mediaType,
          note: { [run] note in try await run.keep(StepNote(step: link.step.name, text: note)) },
          readBack: { [base = partial.base] offset, buffer in try base.read(at: offset, into: &buffer) }) : nil
    }
  }

  /// The workspace for a follower; `nil` if the storage has none, or no space is left.
  private func workspace(beside partial: FollowedPartial) async -> String? {
    guard state.withLock({ $0.mayWrite }), await hasRoom() else { return nil }
    // Without the claim on the partial's name, the workspace would look abandoned to other processes. If something cannot be
    // made, the step reports why.
    guard (try? partial.persist()) != nil else { return nil }
    state.withLock { $0.hasWorkspace = true }
    return (try? await run.storage.workspace(run.partialKey)) ?? nil
  }

  // MARK: While bytes arrive

  private func follow(_ partial: FollowedPartial) async {
    let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    partial.notify(wake, at: state.withLock { $0.position } + Self.bytesBetweenWakes)
    for await _ in wakes {
      if state.withLock({ $0.followers.contains(where: \.writes) }), await !hasRoom() { await endWriting() }
      // No thread waits for bytes: there may be thousands of slow transfers.
      await run.context.executors.blocking { self.takeBlocks(of: partial) }
      let position = state.withLock { $0.followers.isEmpty ? nil : $0.position }
      guard let position else { return }
      partial.notify(wake, at: position + Self.bytesBetweenWakes)
    }
  }

  /// Takes all bytes that are there, or until the task is cancelled.
  private func takeBlocks(of partial: FollowedPartial) {
    while !Task.isCancelled {
      let (position, followers) = state.withLock { ($0.position, $0.followers) }
      guard !followers.isEmpty else { return }
      switch partial.claim(from: position, atMost: BlockPool.blockSize) {
      case .arrived(let block):
        pass(block.span.bytes, to: followers)
        partial.giveBack(block)
      case .stored(let count):
        // If the bytes cannot be read, the step reads them again and reports why.
        guard read(count, of: partial, at: position, for: followers) else { return discard { _ in true } }
      case .nothing: return
      case .changed: return discard { _ in true }
      }
    }
  }

  private func read(_ count: Int, of partial: FollowedPartial, at position: Int64, for followers: [Follower]) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: count, alignment: 64) { buffer in
      var span = buffer.mutableBytes
      guard let got = try? partial.read(at: position, into: &span), got == count else { return false }
      pass(UnsafeRawBufferPointer(buffer).bytes, to: followers)
      return true
    }
  }

  private func pass(_ bytes: RawSpan, to followers: [Follower]) {
    var refused: Set<Int> = []
    for follower in followers {
      do { try follower.follower.take(bytes) } catch { refused.insert(follower.index) }
    }
    state.withLock { $0.position += Int64(bytes.byteCount) }
    // At once: it may have filled the disk.
    if !refused.isEmpty { discard { refused.contains($0.index) } }
  }

  // MARK: The step

  /// Returns the follower of a step if it has taken exactly the bytes of the partial, after it has taken those that are
  /// left; `nil` if the step has to read its input.
  ///
  /// It stays the follower's owner: ``end(at:)`` is called when the step has returned.
  /// - Throws: `CancellationError`.
  func follower(of link: RunChain.Link, at index: Int, input: Artifact) async throws -> (any TransferFollower)? {
    guard let partial = followed, state.withLock({ $0.followers.contains { $0.index == index } }) else { return nil }
    await run.context.executors.blocking { self.takeBlocks(of: partial) }
    try Task.checkCancellation()
    guard partial.isUnchanged, let size = try? partial.size(), input.size == .known(size),
      state.withLock({ $0.position == size })
    else {
      await end()
      return nil
    }
    let found = state.withLock { $0.followers.first { $0.index == index } }
    if let found, found.step == link.step.name, found.digests == link.digests { return found.follower }
    await end(at: index)
    return nil
  }

  // MARK: The end

  /// Discards the follower of a step.
  func end(at index: Int) async {
    await run.context.executors.blocking { self.discard { $0.index == index } }
  }

  /// Discards all followers: the bytes are not theirs any more, or no step will need them. No bytes may arrive meanwhile.
  func end() async {
    guard let partial = followed else { return }
    partial.endReading()
    guard state.withLock({ !$0.followers.isEmpty }) else { return }
    await run.context.executors.blocking { self.discard { _ in true } }
  }

  /// Discards the followers that write, so that a transfer that has met a full disk can go on.
  ///
  /// - Returns: Whether there is space that was not there before.
  func givesRoom() async -> Bool {
    await endWriting()
    return state.withLock { state in
      defer { state.hasGivenRoom = false }
      return state.hasGivenRoom
    }
  }

  /// Discards the followers that write. There are no others for this run.
  private func endWriting() async {
    state.withLock { $0.mayWrite = false }
    guard state.withLock({ $0.followers.contains(where: \.writes) }) else { return }
    await run.context.executors.blocking { self.discard(where: \.writes) }
  }

  /// Blocks while followers remove what they have written.
  private func discard(where isUseless: (Follower) -> Bool) {
    let (useless, isOver) = state.withLock { state in
      let useless = state.followers.filter(isUseless)
      state.followers.removeAll(where: isUseless)
      return (useless, state.followers.isEmpty)
    }
    for follower in useless { follower.follower.discard() }
    if useless.contains(where: \.writes) { state.withLock { $0.hasGivenRoom = true } }
    if isOver { followed?.endReading() }
  }

  /// Whether the gates that protect a disk leave more than the running downloads need.
  private func hasRoom() async -> Bool {
    let tight = await run.gate {
      $0.subtractingReportingOverflow(run.context.room.total).partialValue < Self.room
    }
    return tight == nil
  }
}
