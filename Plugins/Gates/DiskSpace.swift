public import DownpipeCore
import DownpipePOSIX

/// A gate that is open while a disk has more free space than a reserve.
///
/// ```swift
/// DiskSpace(reserve: 2 << 30, at: "~/Downloads")     // 2 GiB
/// ```
/// It closes when the free space falls below the reserve: running downloads are suspended and keep their bytes, and
/// waiting downloads say why. It opens again when a sixteenth of the reserve more is free, 64 MiB at most, so that it
/// does not open and close all the time.
///
/// The free space is that which the process may use, without blocks for the superuser (statvfs(3)). The gate checks it
/// every second while less than 4 GiB above the reserve is free, every 5 seconds while it is closed, and otherwise every
/// 10 seconds. Between two checks the transfers can use a part of the reserve: choose it accordingly.
///
/// A download whose size is known does not start while it does not fit above the reserve, beside what the running
/// downloads have yet to receive: see ``/DownpipeCore/Gate/room(for:)``. Others are suspended on the way.
public struct DiskSpace: Gate {
  /// Identifies the gate in its pipeline; `DiskSpace` by default.
  public let id: String
  private let reserve: Int64
  private let path: String
  private let time: any TimeSource
  private let freeBytes: @Sendable (String) throws -> Int64

  /// Creates a gate.
  ///
  /// - Parameters:
  ///   - reserve: The bytes that stay free; 0 or less for none.
  ///   - path: A file or folder on the disk; `~` is the home directory. If it does not exist, the nearest existing
  ///     folder above it counts.
  ///   - id: Identifies the gate in its pipeline.
  public init(reserve: Int64, at path: String, id: String = "DiskSpace") {
    self.init(reserve: reserve, at: path, id: id, time: SystemTime()) { path in
      do throws(SystemError) {
        return try FileSystem.system.availableBytes(atOrAbove: path)
      } catch {
        throw error.downloadError("read the free space of", path, otherwise: .storage)
      }
    }
  }

  package init(
    reserve: Int64, at path: String, id: String = "DiskSpace", time: any TimeSource,
    freeBytes: @escaping @Sendable (String) throws -> Int64
  ) {
    self.id = id
    self.reserve = min(max(0, reserve), 1 << 60)
    self.path = PathText.absolute(path)
    self.time = time
    self.freeBytes = freeBytes
  }

  /// The reserve and the path.
  public var summary: String { "\(ByteFormat.binary.format(reserve)) stay free at \(path)" }

  /// Publishes the current rule and then each change, until the task is cancelled.
  ///
  /// While the free space cannot be read, the gate is open.
  /// - Throws: `DownloadError` when the free space cannot be read at the start; `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    var published: GateRule.Verdict?
    while true {
      var free = Int64.max
      do {
        free = try await readFreeBytes()
      } catch {
        try Task.checkCancellation()
        if published == nil { throw error }
      }
      let verdict = verdict(free, wasOpen: published == nil || published == .open)
      if verdict != published {
        published = verdict
        publish(GateRule(verdict))
      }
      try await time.sleep(for: interval(isOpen: verdict == .open, free: free))
    }
  }

  /// Returns the free space above the reserve.
  public func room(for candidate: Candidate) async throws -> Int64? { try await readFreeBytes() - reserve }

  /// Reads the free space on another thread, since the call waits while a network file system does not answer.
  private func readFreeBytes() async throws -> Int64 {
    let (path, freeBytes) = (path, freeBytes)
    return try await BlockingThreads.run { _ in try freeBytes(path) }
  }

  private func verdict(_ free: Int64, wasOpen: Bool) -> GateRule.Verdict {
    if free >= reserve + (wasOpen ? 0 : min(reserve / 16, 64 << 20)) { return .open }
    let format = ByteFormat.binary
    return .closed("\(name): \(format.format(free)) are free at \(path), and \(format.format(reserve)) are reserved")
  }

  private func interval(isOpen: Bool, free: Int64) -> Duration {
    if !isOpen { return .seconds(5) }
    return free - reserve < 4 << 30 ? .seconds(1) : .seconds(10)
  }
}
