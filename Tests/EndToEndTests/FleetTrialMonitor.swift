#if os(Linux) && Postgres
  import DownpipeCore
  import Foundation
  import Synchronization

  @testable import FaultyServer

  /// What the operators of a fleet look at: the workers' endpoints and `downpipe status`, again and again.
  final class FleetTrialMonitor: Sendable {
    struct Look: Sendable {
      var at: UInt64
      var worker: Int
      /// The HTTP status of `/healthz`; 0 for none.
      var health: Int
    }

    /// What `downpipe status --json` says.
    struct Status: Decodable, Sendable {
      struct Worker: Decodable, Sendable {
        var host: String
        var isHeard: Bool
        var running: Int
      }

      var queue: [String: Int]
      var failures: [String: Int]
      var workers: [Worker]
    }

    private struct State {
      var looks: [Look] = []
      var statuses = 0
      var problems: [String] = []
      var mostRunning = 0
    }

    private let machine: FleetTrialMachine
    private let tool: String
    private let ledger: String
    private let state = Mutex(State())

    init(on machine: FleetTrialMachine, tool: String, ledger: String) {
      (self.machine, self.tool, self.ledger) = (machine, tool, ledger)
    }

    var looks: [Look] { state.withLock { $0.looks } }
    var problems: [String] { state.withLock { $0.problems } }
    /// How often the database was looked at, and the most downloads that ran at once.
    var summary: (statuses: Int, mostRunning: Int) { state.withLock { ($0.statuses, $0.mostRunning) } }

    /// Looks at everything until the task is cancelled.
    ///
    /// - Parameter added: The bounds of the number of downloads that were added.
    func watch(_ workers: [FleetTrialWorker], added: @escaping @Sendable () -> Int) async {
      while !Task.isCancelled {
        for worker in workers {
          let text = try? await get("http://\(worker.endpoint)/healthz", "-o", "/dev/null", "-w", "%{http_code}")
          let look = Look(at: WallClock.now, worker: worker.number, health: text.flatMap { Int($0) } ?? 0)
          state.withLock { $0.looks.append(look) }
        }
        let before = added()
        if let status = try? await status() { note(status, before...added()) }
        try? await Task.sleep(for: .seconds(5))
      }
    }

    /// No download ever disappears from the queue, or appears in it twice.
    private func note(_ status: Status, _ added: ClosedRange<Int>) {
      let sum = status.queue.values.reduce(0, +)
      state.withLock { state in
        state.statuses += 1
        state.mostRunning = max(state.mostRunning, status.workers.reduce(0) { $0 + $1.running })
        guard !added.contains(sum) else { return }
        state.problems.append("the status shows \(sum) downloads, but \(added) were added: \(status.queue)")
      }
    }

    func status() async throws -> Status {
      let text = try await machine.run([tool, "status", "--ledger", ledger, "--json"])
      return try JSONDecoder().decode(Status.self, from: Data(text.utf8))
    }

    func metrics(of worker: FleetTrialWorker) async throws -> [String: Double] {
      let text = try await get("http://\(worker.endpoint)/metrics")
      let values = text.split(separator: "\n").compactMap { line -> (String, Double)? in
        let words = line.split(separator: " ")
        return words.count == 2 ? Double(words[1]).map { (String(words[0]), $0) } : nil
      }
      return Dictionary(values) { $1 }
    }

    private func get(_ url: String, _ more: String...) async throws -> String {
      try await machine.run(["curl", "-sS", "-m", "3", url] + more)
    }
  }
#endif
