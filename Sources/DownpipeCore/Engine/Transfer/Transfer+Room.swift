internal import Synchronization

// Room on the disk for a download of known size.
extension Transfer {
  /// Sizes that are not compared with the free space: a gate that watches the disk notices them soon enough, and a
  /// small download costs no system call for it.
  private static let smallest: Int64 = 1 << 20

  /// Claims room for the missing bytes, unless the size is not known or the run has claimed it.
  ///
  /// - Throws: ``DownloadError`` with `.noSpace` if the bytes do not fit.
  func claimRoom() async throws {
    guard !run.context.policies.gates.isEmpty else { return }
    let (total, have) = run.read { record in
      (record.checkpoint.total.bytes ?? record.request.expectedSize.bytes, record.checkpoint.ranges.byteCount)
    }
    guard let total, total - have >= Self.smallest, !run.context.room.hasClaim(run) else { return }
    var lack: Int64?
    let gate = await run.gate { room in
      lack = run.context.room.claim(total, for: run, in: room)
      return lack != nil
    }
    guard let gate, let lack else { return }
    run.context.room.release(run)
    if let available = await run.context.availableBytes() {
      run.state.withLock { $0.neededRoom = available.addingReportingOverflow(lack).partialValue }
    }
    let (missing, left) = (total - have, max(0, total - have - lack))
    throw DownloadError(
      .noSpace,
      "the download needs \(ByteFormat.binary.format(missing)), and \(ByteFormat.binary.format(left)) of the disk "
        + "are left for it: free some space", stage: gate.name)
  }
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
