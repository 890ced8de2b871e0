#if os(Linux) && Postgres
  import DownpipeCore
  import Foundation

  /// Two PostgreSQL servers on machines of their own: a primary, and a standby that receives its log (streaming
  /// replication).
  ///
  /// Replication is synchronous: a commit is answered when the standby has it, so that a fail-over loses nothing that a
  /// worker has been told.
  actor FleetTrialDatabase {
    private let network: FleetTrialNetwork
    private let machines: [FleetTrialMachine]
    /// The folder of each server, with its data and its socket.
    private let folders: [String]
    private let programs: String
    private var primary = 0
    /// The cut of the machine that is lost.
    private var loss: Int?

    /// What workers are told: both servers, of which libpq takes the one that accepts changes.
    nonisolated let address: String
    /// The addresses of both servers.
    nonisolated let places: [String]

    /// Starts both servers.
    init(_ network: FleetTrialNetwork, in folder: String) async throws {
      self.network = network
      machines = [try await network.machine("a", number: 211), try await network.machine("b", number: 212)]
      places = machines.map(\.address)
      folders = machines.map { "\(folder)/\($0.name)" }
      address =
        "postgresql://downpipe@\(machines[0].address),\(machines[1].address)/downpipe?target_session_attrs=read-write"
      let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
      guard let version = versions.compactMap({ Int($0) }).max() else {
        throw DownloadError(.invalidRequest, "PostgreSQL is missing: install Debian's package postgresql")
      }
      programs = "/usr/lib/postgresql/\(version)/bin"
      for folder in folders {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try await RootAccess.run("chown", ["postgres", folder])
      }
      try await shell(
        0,
        """
        "$bin/initdb" -D "$1/data" -U downpipe -A trust -E UTF8 --locale=C.UTF-8 -N >"$1/log" 2>&1
        printf "host all all all trust\\nhost replication all all trust\\n" >>"$1/data/pg_hba.conf"
        printf "%s\\n" "listen_addresses = '*'" "fsync = off" "max_connections = 300" "shared_buffers = 256MB" \
          "max_wal_size = 512MB" "wal_keep_size = 256MB" "wal_retrieve_retry_interval = 500ms" "log_lock_waits = on" \
          "dynamic_shared_memory_type = mmap" \
          "log_line_prefix = '%m %p %h '" "log_min_duration_statement = 5000" >>"$1/data/postgresql.conf"
        """)
      try await control(0, "start")
      try await shell(0, "\"$bin/createdb\" -h \"$1\" -U downpipe downpipe")
      try await makeStandby(1)
    }

    // MARK: Programs

    /// Closes what a server must not inherit: Foundation takes a program for ended when nothing has its descriptors.
    private static let preamble = """
      for f in /proc/$$/fd/*; do n=${f##*/}; [ "$n" -le 2 ] || eval "exec $n>&-"; done

      """

    /// Runs a script as the user of the servers; `$1` is the folder, `$bin` has the programs.
    @discardableResult
    private func shell(_ server: Int, _ script: String) async throws -> String {
      try await machines[server].run([
        "/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "/usr/bin/env", "bin=\(programs)",
        "/bin/bash", "-ec", Self.preamble + script, "bash", folders[server],
      ])
    }

    private func control(_ server: Int, _ command: String) async throws {
      let starts = command.contains("start")
      let options = starts ? "-l \"$1/log\" -o \"-k '$1' -c cluster_name=\(machines[server].name)\"" : ""
      try await shell(
        server,
        "\"$bin/pg_ctl\" \(command) -w -t 600 -D \"$1/data\" \(options) </dev/null >/dev/null 2>>\"$1/log\"")
    }

    /// Runs statements on the primary, and returns their rows.
    func query(_ text: String) async throws -> [[String]] {
      let output = try await machines[primary].run([
        "\(programs)/psql", "-h", folders[primary], "-U", "downpipe", "-d", "downpipe", "-v", "ON_ERROR_STOP=1", "-X",
        "-A",
        "-t", "-q", "-F", "\t", "-c", text,
      ])
      return output.split(separator: "\n").map {
        $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      }
    }

    // MARK: Replication

    /// Makes a server the standby of the primary, and waits until commits wait for it.
    private func makeStandby(_ server: Int) async throws {
      let place = machines[primary].address
      try await shell(
        server,
        """
        rm -rf "$1/data"
        "$bin/pg_basebackup" -h \(place) -U downpipe -D "$1/data" -R -X stream -c fast >>"$1/log" 2>&1
        """)
      try await control(server, "start")
      _ = try await query("ALTER SYSTEM SET synchronous_standby_names = '*'")
      _ = try await query("SELECT pg_reload_conf()")
      try await waitForStandby()
    }

    /// Waits until the standby has everything, and commits wait for it.
    private func waitForStandby() async throws {
      let text = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
      while try await query(text) != [["1"]] { try await Task.sleep(for: .milliseconds(100)) }
    }

    // MARK: Faults

    func suffer(_ fault: FleetTrialFault.Database) async throws {
      switch fault {
      case .restart: try await control(primary, "restart -m fast")
      case .crash: try await control(primary, "restart -m immediate")
      case .outage(let time):
        try await control(primary, "stop -m fast")
        try await Task.sleep(for: time)
        try await control(primary, "start")
      case .failOver:
        try await waitForStandby()
        try await control(primary, "stop -m immediate")
        try await promote()
      case .failOverOfMachine:
        try await waitForStandby()
        loss = try await network.cut(machines[primary].address, "all", .blackhole)
        try await control(primary, "stop -m immediate")
        try await promote()
      }
    }

    private func promote() async throws {
      primary = 1 - primary
      try await control(primary, "promote")
    }

    /// Makes the former primary the standby, if there was a fail-over.
    func recover(from fault: FleetTrialFault.Database) async throws {
      let other = 1 - primary
      if let loss { try await network.mend(loss) }
      loss = nil
      if fault == .failOver || fault == .failOverOfMachine { try await makeStandby(other) }
      try await waitForStandby()
    }
  }
#endif
