#if os(Linux) && Postgres
  import ChildPipe
  import DownpipeCore
  import Foundation
  import Glibc
  import Synchronization

  /// A machine of the trial: namespaces for the network, for processes, for the host name. Programs on it see no processes of
  /// other machines, so that leases alone decide.
  ///
  /// It ends with this process, also if that is killed, and its programs with it.
  final class FleetTrialMachine: Sendable {
    let name: String
    /// The number of its network at the router.
    let number: Int
    private let holder: Process
    private let input: FileHandle
    /// The first process of the machine.
    private let first: Int32

    var address: String { "10.65.\(number).2" }
    var gateway: String { "10.65.\(number).1" }

    /// - Throws: `DownloadError` with `.permission` where it is not allowed.
    init(_ name: String, number: Int) throws {
      (self.name, self.number) = (name, number)
      holder = Process()
      let (input, output) = (try ChildPipe(), try ChildPipe())
      holder.executableURL = URL(filePath: "/usr/bin/unshare")
      holder.arguments = [
        "--net", "--pid", "--uts", "--ipc", "--mount", "--fork", "--mount-proc", "--kill-child=SIGKILL", "/bin/sh",
        "-c",
        "hostname \"$0\" && ip link set lo up && echo ready && exec cat", name,
      ]
      try holder.run(input: input, output: output)
      self.input = input.fileHandleForWriting
      let answer = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
      guard answer.hasPrefix("ready"), let first = Self.children(of: holder.processIdentifier).first else {
        throw DownloadError(
          .permission, "no namespaces can be made (unshare): the trial of a fleet needs Linux, root and iproute2")
      }
      self.first = first
    }

    deinit { end() }

    /// Ends the machine with all programs.
    func end() {
      try? input.close()
      holder.terminate()
      kill(first, SIGKILL)
    }

    /// The processes that a process has started.
    static func children(of process: Int32) -> [Int32] {
      let text = try? String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
      return (text ?? "").split(separator: " ").compactMap { Int32($0) }
    }

    /// What starts a program on the machine. The program is a child of it.
    var launcher: [String] { ["/usr/bin/nsenter", "-t", "\(first)", "--net", "--pid", "--uts", "--ipc", "--mount"] }

    /// Runs a program to its end.
    /// - Throws: `DownloadError` unless it succeeds.
    @discardableResult
    func run(_ words: [String]) async throws -> String {
      let all = launcher + words
      let outcome = try await Command(all[0], Array(all.dropFirst())).run()
      guard outcome.status == 0 else {
        throw DownloadError(.processing, "“\(words.joined(separator: " "))” on \(name): \(outcome.everything)")
      }
      return outcome.output
    }

    /// Configures the network. The numbers of processes are those of the system.
    func ip(_ line: String) async throws {
      let words = ["-t", "\(first)", "--net", "ip"] + line.split(separator: " ").map(String.init)
      try await RootAccess.run("nsenter", words)
    }

    /// Connects the machine to a router by a cable.
    func connect(to router: FleetTrialMachine) async throws {
      try await router.ip("link add v\(number) type veth peer name eth0 netns \(first)")
      try await router.ip("addr add \(gateway)/30 dev v\(number)")
      try await router.ip("link set v\(number) up")
      try await ip("addr add \(address)/30 dev eth0")
      try await ip("link set eth0 up")
      try await ip("route add default via \(gateway)")
    }
  }

  /// The network of the trial: all machines are at one router, which can lose the packets between two places.
  final class FleetTrialNetwork: Sendable {
    /// The addresses of all hosts of the web.
    static let web = "10.66.0.0/16"
    private let router: FleetTrialMachine
    private let cuts = Atomic(0)

    init() async throws {
      router = try FleetTrialMachine("router", number: 0)
      try await router.run(["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"])
    }

    func machine(_ name: String, number: Int) async throws -> FleetTrialMachine {
      let machine = try FleetTrialMachine(name, number: number)
      try await machine.connect(to: router)
      return machine
    }

    /// Gives a machine all addresses of the web.
    func host(on machine: FleetTrialMachine) async throws {
      try await router.ip("route add \(Self.web) via \(machine.address)")
      try await machine.ip("route add local \(Self.web) dev lo")
    }

    /// Loses the packets between two places, in both directions.
    /// - Returns: What ``mend(_:)`` needs.
    func cut(_ one: String, _ other: String, _ loss: FleetTrialFault.Loss) async throws -> Int {
      // The kernel takes rules of one priority for equal that are not.
      let priority = cuts.add(1, ordering: .relaxed).newValue + 100
      try await router.ip("rule add priority \(priority) from \(one) to \(other) \(loss.rawValue)")
      try await router.ip("rule add priority \(priority) from \(other) to \(one) \(loss.rawValue)")
      return priority
    }

    func mend(_ cut: Int) async throws {
      for _ in 0..<2 { try await router.ip("rule del priority \(cut)") }
    }
  }
#endif
