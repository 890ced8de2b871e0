#if os(Linux) && Postgres
  import DownpipeTesting
  import Foundation

  /// What the trial of a fleet does, by environment variables:
  /// - `DOWNPIPE_FLEET_FILES`: the number of files; without it there is no trial. `.ci/long fleet` has 100,000; 2,000 are a
  ///   short trial of some minutes.
  /// - `DOWNPIPE_FLEET_HOSTS`, `DOWNPIPE_FLEET_WORKERS`: 200 and 8, or 20 and 4 in a short trial.
  /// - `DOWNPIPE_FLEET_SEED`: the seed of files, faults, and their order; random by default.
  /// - `DOWNPIPE_FLEET_PAUSE`: for how many seconds workers are stopped; 120, or 45 in a short trial. A lease has 30.
  /// - `DOWNPIPE_FLEET_FOLDER`: where the trial has its folder; the folder for temporary files by default. It is kept if
  ///   the trial fails.
  /// - `DOWNPIPE_TOOL`: another `downpipe`, such as the one of a release build.
  struct FleetTrialSettings: Sendable {
    let files: Int
    let hosts: Int
    let workers: Int
    let seed: UInt64
    let pause: Duration
    let folder: String
    let tool: String
    /// How many downloads each worker runs at once.
    let jobs = 8
    /// The limit per host of the whole fleet.
    let perHost = 2

    var isShort: Bool { files < 20_000 }

    /// The settings of the trial that is asked for; `nil` if there is none.
    static let asked = FleetTrialSettings(ProcessInfo.processInfo.environment)

    init?(_ environment: [String: String]) {
      func number(_ name: String) -> Int? { environment["DOWNPIPE_FLEET_" + name].flatMap { Int($0) } }
      guard let files = number("FILES"), files > 0 else { return nil }
      let isShort = files < 20_000
      self.files = files
      hosts = number("HOSTS") ?? (isShort ? 20 : 200)
      workers = number("WORKERS") ?? (isShort ? 4 : 8)
      seed = number("SEED").map { UInt64($0) } ?? .random(in: 0...UInt64(UInt32.max))
      pause = .seconds(number("PAUSE") ?? (isShort ? 45 : 120))
      folder = environment["DOWNPIPE_FLEET_FOLDER"] ?? NSTemporaryDirectory()
      tool =
        environment["DOWNPIPE_TOOL"]
        ?? URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "downpipe").path
    }

    /// The command that repeats the trial.
    var replay: String {
      "DOWNPIPE_FLEET_FILES=\(files) DOWNPIPE_FLEET_HOSTS=\(hosts) DOWNPIPE_FLEET_WORKERS=\(workers) "
        + "DOWNPIPE_FLEET_PAUSE=\(pause / .seconds(1)) DOWNPIPE_FLEET_SEED=\(seed) .ci/long fleet"
    }
  }
#endif
