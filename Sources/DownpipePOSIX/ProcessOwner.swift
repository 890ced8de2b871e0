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

/// The owner of something that several processes can reach, such as a download in a ledger or a partial on a disk.
///
/// An owner is one opening by one process. Its text distinguishes it from every other opening, also from one by a later
/// process with the same process number.
package struct ProcessOwner: Sendable, Hashable {
  /// The host name, for messages only: host names are not unique.
  package var host: String
  /// The random identifier of the machine's current boot. Process numbers are valid within one boot.
  package var boot: String
  /// The PID and time namespaces of the process: containers have process numbers of their own.
  package var space: String
  /// The process number.
  package var process: Int32
  /// When the process started, in the unit of the system: process numbers are reused.
  package var start: UInt64
  /// The copy of this code in the process, and the opening.
  package var opening: String

  /// The text that ledgers and claims store. It contains no whitespace.
  package var text: String { "\(host)/\(boot)/\(space)/\(process)/\(start)/\(opening)" }

  package init(host: String, boot: String, space: String, process: Int32, start: UInt64, opening: String) {
    self.host = host
    self.boot = boot
    self.space = space
    self.process = process
    self.start = start
    self.opening = opening
  }

  /// Parses ``text``; `nil` for any other text.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 6, let process = Int32(parts[3]), let start = UInt64(parts[4]) else { return nil }
    self.init(
      host: parts[0], boot: parts[1], space: parts[2], process: process, start: start, opening: parts[5])
  }

  /// Creates the owner of a new opening by this process.
  package static func new() -> ProcessOwner {
    var owner = Self.current
    owner.opening = "\(copyOfCode)-\(DownloadID())"
    let opening = owner.opening
    openings.withLock { _ = $0.insert(opening) }
    return owner
  }

  /// Ends the opening: its ``standing`` is `.gone` from now on.
  package func end() {
    let opening = opening
    Self.openings.withLock { _ = $0.remove(opening) }
  }

  // MARK: Standing

  /// What this process can prove about an owner.
  package enum Standing: Sendable, Hashable {
    /// The opening exists. Its process may be stopped (`SIGSTOP`) and continue later.
    case alive
    /// The opening has ended and cannot continue.
    case gone
    /// Neither can be proved from this process, so that only a lease decides.
    case unknown
  }

  /// What this process can prove about the owner that a text names: `.unknown` if it cannot parse the text, which a
  /// later version may have written.
  package static func standing(of text: String) -> Standing { ProcessOwner(text)?.standing ?? .unknown }

  /// Whether the opening provably exists, has provably ended, or neither.
  ///
  /// An equal boot identifier proves the same machine, since it is random. A different one proves nothing: host names
  /// and machine identifiers are copied with disk images, so a machine cannot distinguish its own restart from another
  /// machine with the same name.
  package var standing: Standing {
    let here = Self.current
    guard !boot.isEmpty, boot == here.boot, space == here.space else { return .unknown }
    if process == here.process, start == here.start {
      // Another copy of this code in the process has a list of openings of its own.
      guard opening.hasPrefix("\(Self.copyOfCode)-") else { return .alive }
      let opening = opening
      return Self.openings.withLock { $0.contains(opening) } ? .alive : .gone
    }
    if kill(process, 0) != 0, errno == ESRCH { return .gone }
    guard start != 0, let began = Self.startTime(of: process) else { return .unknown }
    return began != start || Self.isDead(process) ? .gone : .alive
  }

  /// The openings of this copy of the code that have not ended.
  private static let openings = Mutex<Set<String>>([])

  /// Identifies this copy of the code: a process can load it twice.
  private static let copyOfCode = DownloadID()

  // MARK: This process

  /// This process, without an opening.
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
    // ProcessInfo.hostName may query the network.
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
      // A time namespace shifts the start times of processes.
      let names = ["pid", "time"].map { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/\(name)")) ?? ""
      }
      return clean(names.joined(separator: "+"))
    #else
      return ""
    #endif
  }

  // MARK: Other processes

  /// When a process started; `nil` when it does not exist or the system does not say.
  package static func startTime(of process: Int32) -> UInt64? {
    #if canImport(Darwin)
      var query = [CTL_KERN, KERN_PROC, KERN_PROC_PID, process]
      var info = kinfo_proc()
      var size = MemoryLayout<kinfo_proc>.stride
      guard sysctl(&query, UInt32(query.count), &info, &size, nil, 0) == 0, size > 0 else { return nil }
      // `p_starttime` is a macro for this, which Swift does not import.
      let time = info.kp_proc.p_un.__p_starttime
      return UInt64(clamping: time.tv_sec) * 1_000_000 + UInt64(clamping: time.tv_usec)
    #else
      return stat(of: process).flatMap { startTime(inStat: $0) }
    #endif
  }

  /// Whether a process has ended and its parent has not collected it yet (a zombie).
  private static func isDead(_ process: Int32) -> Bool {
    #if os(Linux)
      // The first thread of a process may end before the others, so one thread must be left.
      guard let stat = stat(of: process), isDead(stat: stat),
        let threads = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
      else { return false }
      return threads.count <= 1
    #else
      return false
    #endif
  }

  private static func stat(of process: Int32) -> String? {
    try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
  }

  /// Whether the state in `/proc/<pid>/stat` (field 3) is that of a process that has ended.
  package static func isDead(stat: String) -> Bool { ["Z", "X"].contains(fields(ofStat: stat).first) }

  /// The start time in `/proc/<pid>/stat` (field 22).
  package static func startTime(inStat stat: String) -> UInt64? {
    let fields = fields(ofStat: stat)
    return fields.count > 19 ? UInt64(fields[19]) : nil
  }

  /// The fields from the third on. The second one is the program's name in parentheses, which may contain spaces and
  /// parentheses.
  private static func fields(ofStat stat: String) -> [Substring] {
    stat.lastIndex(of: ")").map { stat[stat.index(after: $0)...].split(separator: " ") } ?? []
  }
}
