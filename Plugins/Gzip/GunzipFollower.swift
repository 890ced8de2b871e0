import DownpipeCore
import DownpipePOSIX
import Synchronization

/// Decompresses a download while its bytes arrive, into the workspace.
///
/// It stops at the first error and leaves the file to its step, which meets the same error, or has the size of the whole
/// file for its limit: that on the ratio applies to the bytes that have arrived.
final class GunzipFollower: TransferFollower {
  /// Each one holds the memory of a decoder, about 300 KiB, as long as its transfer takes.
  static let places = FollowerPlaces(64)

  private let step: Gunzip
  private let output: FollowerOutput
  private let taken = Atomic<Int64>(0)
  /// `nil` after the end.
  private let decoder: Mutex<GzipDecoder?>
  private let place: Mutex<FollowerPlaces.Place?>

  init(_ step: Gunzip, in workspace: String, _ place: FollowerPlaces.Place) throws(DownloadError) {
    self.step = step
    output = FollowerOutput(in: workspace, folder: Gunzip.folder)
    decoder = Mutex(
      try GzipDecoder(limit: step.limit(forInput: 0, inMemory: false), trailingBytes: step.trailingBytes))
    self.place = Mutex(place)
  }

  func take(_ bytes: RawSpan) throws {
    let count = taken.add(Int64(bytes.byteCount), ordering: .relaxed).newValue
    try decoder.withLock { decoder in
      decoder?.limit.byteCount = step.mostOutput(ofBytes: count)
      try decoder?.update(bytes) { block in try output.write(block) }
    }
  }

  /// Checks the end of the file, and gives the output its name.
  ///
  /// - Parameter name: The name for what was decompressed.
  /// - Returns: The output; `nil` if the step has to read the file, because the follower was discarded, or the file is too
  ///   short for a decision.
  func finish(
    durability: Durability, naming name: (Gunzip.Unpacked) throws -> String
  ) throws -> (path: String, name: String, byteCount: Int64)? {
    guard taken.load(ordering: .relaxed) > 1 else { return nil }
    let unpacked: Gunzip.Unpacked? = try decoder.withLock { decoder in
      try decoder?.finish { block in try output.write(block) }
      guard let byteCount = decoder?.byteCount else { return nil }
      return Gunzip.Unpacked(byteCount: byteCount, headerName: decoder?.headerName)
    }
    guard let unpacked else { return nil }
    let name = try name(unpacked)
    return (try output.commit(as: name, durability: durability).path, name, unpacked.byteCount)
  }

  func discard() {
    decoder.withLock { $0 = nil }
    place.withLock { $0 = nil }
    output.discard()
  }
}
