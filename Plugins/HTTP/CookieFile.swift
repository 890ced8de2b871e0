#if LIBCURL
  import DownpipePOSIX
  import Foundation

  /// Files of cookies in Netscape's format: a line of seven fields with tabs in between for each cookie, and comments.
  enum CookieFile {
    /// The number of the first line that is neither a cookie nor a comment; 1 for comments of another kind of file; `nil` for
    /// a file that libcurl can replace without losing anything but comments.
    static func lineWithoutCookie(_ bytes: Data) -> Int? {
      var (number, hasCookies, hasComments, isNamed) = (0, false, false, false)
      var rest = bytes[...]
      if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
      while !rest.isEmpty {
        let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
        let line = rest[..<end]
        rest = rest[end...].dropFirst()
        number += 1
        switch kind(of: line) {
        case .empty: break
        case .cookie: hasCookies = true
        case .comment(let isName):
          hasComments = true
          isNamed = isNamed || isName
        case .other: return number
        }
      }
      return hasComments && !hasCookies && !isNamed ? 1 : nil
    }

    private enum Line {
      case empty
      case cookie
      /// Whether it is the comment with which such files begin.
      case comment(isName: Bool)
      case other
    }

    private static func kind(of line: Data) -> Line {
      // No cookie is as long: what is not a text can be one line.
      guard line.count <= 65_536 else { return .other }
      let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespaces.union(.newlines))
      if text.isEmpty { return .empty }
      if text.hasPrefix("#"), !text.hasPrefix("#HttpOnly_") {
        return .comment(isName: text.contains("HTTP Cookie File"))
      }
      // The value may be missing, with the tab before it. The domain of another line can have no spaces.
      let fields = text.split(separator: "\t").map { $0.uppercased() }
      let flags: Set = ["TRUE", "FALSE"]
      return fields.count >= 6 && flags.contains(fields[1]) && flags.contains(fields[3]) ? .cookie : .other
    }

    /// The path of the file that a chain of symbolic links leads to; the path itself without one.
    static func target(_ path: String) -> String {
      var path = path
      // As many as Linux follows.
      for _ in 0..<40 {
        guard let destination = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { break }
        path = destination.hasPrefix("/") ? destination : PathText.split(path).folder + "/" + destination
      }
      return path
    }
  }
#endif
