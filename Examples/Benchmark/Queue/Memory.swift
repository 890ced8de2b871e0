import Foundation

/// The memory of this process, in bytes; `nil` where the system has no /proc.
enum Memory {
  static var now: Int64? { field("VmRSS") }
  static var peak: Int64? { field("VmHWM") }

  private static func field(_ name: String) -> Int64? {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
    let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
    let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int64($0) }
    return kibibytes.map { $0 * 1024 }
  }
}
