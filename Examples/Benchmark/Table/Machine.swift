import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where and with what was measured.
struct Machine: Codable, Sendable {
  struct Program: Codable, Sendable {
    let name: String
    let version: String
  }

  var date: String
  var processor: String
  var cores: Int
  var memory: Int64
  var kernel: String
  var system: String
  var programs: [Program]

  /// This machine now.
  init(programs: [(name: String, version: String)]) {
    date = Date().formatted(.iso8601.year().month().day())
    processor =
      Self.field("model name", separator: ":", in: "/proc/cpuinfo") ?? "unknown processor"
    cores = ProcessInfo.processInfo.activeProcessorCount
    memory = Int64(clamping: ProcessInfo.processInfo.physicalMemory)
    var names = utsname()
    uname(&names)
    kernel =
      withUnsafeBytes(of: names.sysname) { Self.text($0) } + " " + withUnsafeBytes(of: names.release) { Self.text($0) }
    system =
      Self.field("PRETTY_NAME", separator: "=", in: "/etc/os-release")
      ?? ProcessInfo.processInfo.operatingSystemVersionString
    self.programs = programs.map { Program(name: $0.name, version: $0.version) }
  }

  /// The machine, and the programs.
  var lines: [String] {
    [
      "\(date), \(processor), \(cores) cores, \(Shown.bytes(memory)), \(system), \(kernel)",
      programs.map { "\($0.name) \($0.version)" }.joined(separator: ", "),
    ]
  }

  private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }

  private static func field(_ name: String, separator: String, in file: String) -> String? {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(separator: separator, maxSplits: 1).last?
      .trimmingCharacters(in: CharacterSet(charactersIn: " \""))
  }
}
