#if Postgres
  import ChildPipe
  import Foundation

  /// A PostgreSQL server of a test's own, on a Unix socket in a folder of its own. It ends with this process, also if that
  /// is killed.
  public final class PostgresCluster: Sendable {
    /// The folder with the data and the socket.
    public let folder: String
    private let input: FileHandle
    private let reader: FileHandle
    private let shell: Process

    /// The server of all tests that do not stop it.
    public static let shared = Result { try PostgresCluster() }

    /// Runs until its input ends. The server refuses to run as root.
    private static let script = """
      set -e
      bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
      [ -n "$bin" ] || { echo "PostgreSQL is missing: install Debian's package postgresql"; exit 1; }
      "$bin/initdb" -D "$1/data" -U downpipe -A trust -E UTF8 --locale=C.UTF-8 -N >"$1/log" 2>&1
      printf "unix_socket_directories = '%s'\nlisten_addresses = ''\nfsync = off\n" "$1" >>"$1/data/postgresql.conf"
      printf "max_connections = 500\n" >>"$1/data/postgresql.conf"
      "$bin/pg_ctl" start -w -D "$1/data" -l "$1/log" >/dev/null
      "$bin/createdb" -h "$1" -U downpipe downpipe
      echo ready
      while read -r command; do
        "$bin/pg_ctl" "$command" -w -m fast -D "$1/data" -l "$1/log" >/dev/null
        echo done
      done
      "$bin/pg_ctl" stop -m immediate -D "$1/data" >/dev/null || true
      rm -rf "$1"
      """

    /// Starts a server.
    /// - Throws: ``Missing`` if there is none on this machine.
    public init() throws {
      folder = "/tmp/dp-\(UInt32.random(in: 0...UInt32.max))"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      shell = Process()
      let (input, output) = (try ChildPipe(), try ChildPipe())
      let isRoot = getuid() == 0
      if isRoot {
        let owner = Process()
        owner.executableURL = URL(filePath: "/bin/chown")
        owner.arguments = ["postgres", folder]
        try owner.run()
        owner.waitUntilExit()
      }
      let command = ["/bin/sh", "-c", Self.script, "sh", folder]
      let user = ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
      let words = (isRoot ? user : []) + command
      shell.executableURL = URL(filePath: words[0])
      shell.arguments = Array(words.dropFirst())
      try shell.run(input: input, output: output)
      self.input = input.fileHandleForWriting
      reader = output.fileHandleForReading
      guard answer() == "ready" else {
        let log = (try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? ""
        throw Missing(description: "PostgreSQL does not start: is Debian's package postgresql installed? \(log)")
      }
    }

    /// The server does not do what it is asked for.
    public struct Missing: Error, CustomStringConvertible {
      /// What it does not do, and why.
      public var description: String
    }

    deinit {
      try? input.close()
      shell.waitUntilExit()
    }

    private func answer() -> String {
      String(decoding: reader.availableData, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Stops, starts or restarts the server, and returns when that is done.
    /// - Throws: ``Missing`` if the server does not do it.
    public func control(_ command: String) throws {
      try input.write(contentsOf: Data("\(command)\n".utf8))
      guard answer() == "done" else { throw Missing(description: "PostgreSQL has not done “\(command)”") }
    }

    /// The connection URI of its only database.
    public var address: String { "postgresql://downpipe@/downpipe?host=\(folder)" }
  }
#endif
