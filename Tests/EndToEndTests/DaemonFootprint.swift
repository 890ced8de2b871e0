#if RPC && os(Linux)
  import DownpipeCore
  import Foundation

  extension Daemon {
    /// A size of its memory in bytes, by the key of `/proc/PID/status`: `VmRSS` is what is resident, `VmHWM` the most
    /// of it since its start.
    func memory(_ key: String) throws -> Int {
      let status = try String(contentsOfFile: "/proc/\(processIdentifier)/status", encoding: .utf8)
      let words = status.split(separator: "\n").first { $0.hasPrefix(key + ":") }?.split { $0 == " " || $0 == "\t" }
      guard let words, words.count == 3, words[2] == "kB", let size = Int(words[1]) else {
        throw DownloadError(.invalidResponse, "\(key) is not in \(status)")
      }
      return size << 10
    }

    /// How many connections it has, with the one that listens, and how many files. Those of the ledger are opened as
    /// they are needed, and pairs of sockets and timers of its own threads after its start; they are not counted.
    func descriptors() throws -> Int {
      let connections = try ["tcp", "tcp6"].flatMap { name in
        try String(contentsOfFile: "/proc/\(processIdentifier)/net/\(name)", encoding: .utf8).split(separator: "\n")
          .dropFirst().compactMap { line in line.split(separator: " ").dropFirst(9).first.map { "socket:[\($0)]" } }
      }
      let counted = Set(connections)
      let path = "/proc/\(processIdentifier)/fd"
      return try FileManager.default.contentsOfDirectory(atPath: path).count { name in
        // It may be closed meanwhile.
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path + "/" + name) else {
          return false
        }
        let isFile = target.hasPrefix("/") && !target.hasPrefix(folder + "/.downpipe/ledger.sqlite")
        return isFile || counted.contains(target)
      }
    }
  }
#endif
