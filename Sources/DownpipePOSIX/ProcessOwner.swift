internal import DownpipeCore
internal import Foundation
internal import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Who holds something that several processes can reach, such as a download in a ledger or a partial on a disk: one
/// opening of it by one process, told apart from every other one, also from a later process with the same number.
package struct ProcessOwner: Sendable, Hashable {
  /// The machine, for messages: its name proves nothing.
  package var host: String
  /// The run of the machine, by a random identifier: process numbers mean nothing beyond it.
  package var boot: String
  /// The space of process numbers: containers have their own.
  package var space: String
  /// The process.
  package var process: Int32
  /// When the process began, in the system's own unit: numbers are used again.
  package var start: UInt64
  /// The copy of this code in the process, and its opening.
  package var opening: String

  /// As ledgers and claims keep it; no whitespace in it.
  package var text: String { "\(host)/\(boot)/\(space)/\(process)/\(start)/\(opening)" }

  package init(host: String, boot: String, space: String, process: Int32, start: UInt64, opening: String) {
    self.host = host
    self.boot = boot
    self.space = space
    self.process = process
    self.start = start
    self.opening = opening
  }

  /// Reads what ``text`` wrote; `nil` for anything else.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 6, let process = Int32(parts[3]), let start = UInt64(parts[4]) else { return nil }
    self.init(
      host: parts[0], boot: parts[1], space: parts[2], process: process, start: start, opening: parts[5])
  }

  /// The name of a new opening by this process.
  package static func new() -> ProcessOwner {
    var owner = Self.current
    owner.opening = "\(copyOfCode)-\(DownloadID())"
    let opening = owner.opening
    openings.withLock { _ = $0.insert(opening) }
    return owner
  }

  /// Notes that the opening is over.
  package func end() {
    let opening = opening
    Self.openings.withLock { _ = $0.remove(opening) }
  }

  /// What is known of an owner.
  package enum Standing: Sendable, Hashable {
    /// It can work now, or once it is allowed to go on: a stopped process is alive.
    case alive
    /// It can never work again.
    case gone
    /// Neither can be proved from here: only its lease tells.
    case unknown
  }

  /// Whether the opening provably lives, is provably gone, or neither can be proved from here.
  ///
  /// The identifier of a run of the machine is random, so that an equal one proves the same machine, whatever the host
  /// is called. A different one proves nothing: host names and machine ids are copied with images, and a machine
  /// cannot tell its own restart from another machine of the same name.
  package var standing: Standing {
    let here = Self.current
    guard !boot.isEmpty, boot == here.boot, space == here.space else { return .unknown }
    if process == here.process, start == here.start {
      // Another copy of this code in this process knows its own openings.
      guard opening.hasPrefix("\(Self.copyOfCode)-") else { return .alive }
      let opening = opening
      return Self.openings.withLock { $0.contains(opening) } ? .alive : .gone
    }
    if kill(process, 0) != 0, errno == ESRCH { return .gone }
    guard start != 0, let began = Self.startTime(of: process) else { return .unknown }
    return began != start || Self.isDead(process) ? .gone : .alive
  }

  /// Whether no process can work in this owner's name any more. False when that cannot be proved.
  package var isGone: Bool { standing == .gone }

  /// Whether a process has ended and only waits for its parent to notice, which may never happen.
  private static func isDead(_ process: Int32) -> Bool {
    #if os(Linux)
      guard let stat = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8), isDead(stat: stat),
        // Its first thread may have ended before the others.
        let threads = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
      else { return false }
      return threads.count <= 1
    #else
      return false
    #endif
  }

  /// Field 3 of `/proc/<pid>/stat`.
  package static func isDead(stat: String) -> Bool {
    guard let end = stat.lastIndex(of: ")") else { return false }
    return ["Z", "X"].contains(stat[stat.index(after: end)...].split(separator: " ").first)
  }

  /// The openings of this copy of the code that have not ended.
  private static let openings = Mutex<Set<String>>([])

  /// A process may have loaded this code twice, and each copy knows its own openings only.
  private static let copyOfCode = DownloadID()

  /// This process; the opening is left out.
  private static let current: ProcessOwner = {
    let process = getpid()
    return ProcessOwner(
      host: hostName(), boot: bootName(), space: processSpace(), process: process,
      start: startTime(of: process) ?? 0, opening: "")
  }()

  private static func clean(_ text: String) -> String {
    String(text.filter { $0 != "/" && !$0.isWhitespace && $0 != "\0" }.prefix(128))
  }

  private static func hostName() -> String {
    // Not ProcessInfo's, which may ask the network.
    var bytes = [CChar](repeating: 0, count: 256)
    gethostname(&bytes, bytes.count - 1)
    return clean(String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
  }

  private static func bootName() -> String {
    #if canImport(Darwin)
      var size = 0
      guard sysctlbyname("kern.bootsessionuuid", nil, &size, nil, 0) == 0, size > 1 else { return "" }
      var bytes = [UInt8](repeating: 0, count: size)
      guard sysctlbyname("kern.bootsessionuuid", &bytes, &size, nil, 0) == 0 else { return "" }
      return clean(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
    #else
      return clean((try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? "")
    #endif
  }

  private static func processSpace() -> String {
    #if os(Linux)
      // The times at which processes began are shifted in a time namespace of their own.
      let names = ["pid", "time"].map { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/\(name)")) ?? ""
      }
      return clean(names.joined(separator: "+"))
    #else
      return ""
    #endif
  }

  /// When a process began; `nil` when there is no such process, or the system does not tell.
  package static func startTime(of process: Int32) -> UInt64? {
    #if canImport(Darwin)
      var query = [CTL_KERN, KERN_PROC, KERN_PROC_PID, process]
      var info = kinfo_proc()
      var size = MemoryLayout<kinfo_proc>.stride
      guard sysctl(&query, UInt32(query.count), &info, &size, nil, 0) == 0, size > 0 else { return nil }
      let time = info.kp_proc.p_starttime
      return UInt64(clamping: time.tv_sec) * 1_000_000 + UInt64(clamping: time.tv_usec)
    #else
      guard let stat = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return nil }
      return startTime(inStat: stat)
    #endif
  }

  /// Field 22 of `/proc/<pid>/stat`. The second field is the program's name in parentheses, and may hold
  /// spaces and parentheses itself.
  package static func startTime(inStat stat: String) -> UInt64? {
    guard let end = stat.lastIndex(of: ")") else { return nil }
    let fields = stat[stat.index(after: end)...].split(separator: " ")
    return fields.count > 19 ? UInt64(fields[19]) : nil
  }
}
