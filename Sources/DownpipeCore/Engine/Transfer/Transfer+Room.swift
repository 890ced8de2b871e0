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
    guard !run.pipeline.gates.isEmpty else { return }
    let (total, have) = run.read { record in
      (record.checkpoint.total.bytes ?? record.request.expectedSize.bytes, record.checkpoint.ranges.byteCount)
    }
    guard let total, total - have >= Self.smallest, !run.context.room.hasClaim(run) else { return }
    let candidate = run.read { $0.candidate }
    for gate in run.pipeline.gates {
      // A gate that cannot read its disk is open.
      guard let room = (try? await gate.room(for: candidate)) ?? nil else { continue }
      guard let lack = run.context.room.claim(total, for: run, in: room) else { continue }
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
}
