internal import Synchronization

// Room on the disk for a download of known size.
extension Transfer {
  /// Sizes that are not compared with the free space: a small download costs no system call for it, and goes on where a
  /// large one waits.
  private static let smallest: Int64 = 1 << 20

  /// Claims room for the missing bytes on the disk of the storage and behind the gates, unless the size is not known or the
  /// run has claimed it.
  ///
  /// - Throws: ``DownloadError`` with `.noSpace` if the bytes do not fit.
  func claimRoom() async throws {
    let (total, have) = run.read { record in
      (record.checkpoint.total.bytes ?? record.request.expectedSize.bytes, record.checkpoint.ranges.byteCount)
    }
    guard let total, total - have >= Self.smallest, !run.context.room.hasClaim(run) else { return }
    let missing = total - have
    var lack: Int64?
    func fits(in room: Int64) -> Bool {
      lack = run.context.room.claim(total, for: run, in: room)
      return lack == nil
    }
    var stage = await run.gate { !fits(in: $0) }?.name
    let reserve = run.context.options.reserve(for: missing)
    if stage == nil, let free = (try? await run.storage.availableBytes()) ?? nil, !fits(in: max(0, free) - reserve) {
      stage = run.storageName
    }
    guard let stage, let lack else { return }
    run.context.room.release(run)
    if let available = await run.context.availableBytes() {
      run.state.withLock { $0.neededRoom = available.addingReportingOverflow(lack).partialValue }
    }
    let left = max(0, missing - lack)
    throw DownloadError(
      .noSpace,
      "the download needs \(ByteFormat.binary.format(missing)), and \(ByteFormat.binary.format(left)) of the disk "
        + "are left for it: free some space", stage: stage)
  }
}

extension DownloaderOptions {
  /// The bytes that stay free beside a download that has yet to receive so many: an eighth of them, but at least 1 MiB.
  fileprivate func reserve(for missing: Int64) -> Int64 { min(max(0, diskReserve), max(1 << 20, missing / 8)) }
}

extension Run {
  /// The first gate that protects a disk, and leaves room on it that meets a condition; `nil` if there is none. A gate that
  /// cannot read its disk is open.
  func gate(leaving condition: (_ room: Int64) -> Bool) async -> (any Gate)? {
    let gates = context.policies.gates
    guard !gates.isEmpty else { return nil }
    let candidate = read { $0.candidate }
    for gate in gates {
      if let room = (try? await gate.room(for: candidate)) ?? nil, condition(room) { return gate }
    }
    return nil
  }
}
