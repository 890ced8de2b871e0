#if SQLite
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  /// The calls of a run to disturb: all, or a number of them chosen by a seed.
  ///
  /// `DOWNPIPE_CRASH_CALLS` is the number per sweep, or `all`; `DOWNPIPE_CRASH_SEED` selects other calls.
  struct Sweep {
    static let seed = ProcessInfo.processInfo.environment["DOWNPIPE_CRASH_SEED"].flatMap(UInt64.init) ?? 1
    private static let wanted = ProcessInfo.processInfo.environment["DOWNPIPE_CRASH_CALLS"]
    /// The number of failures after which a sweep ends, since they probably have one cause.
    private static let maximumWrong = 5

    let name: String
    let numbers: [Int]

    init(_ name: String, calls count: Int, usually usual: Int) {
      self.name = name
      var generator = SeededGenerator(seed: Self.seed)
      let most = Self.wanted == "all" ? count : Self.wanted.flatMap { Int($0) } ?? usual
      numbers = Array((1...max(1, count)).shuffled(using: &generator).prefix(most)).sorted()
    }

    /// Runs `attempt` with each number and reports failures; `attempt` returns a description of the disturbed call.
    func run(_ attempt: (_ number: Int, _ story: inout [String]) async throws -> Void) async {
      var wrong = 0
      for number in numbers {
        var story: [String] = []
        do {
          try await attempt(number, &story)
        } catch {
          wrong += 1
          Issue.record("\(name), seed \(Self.seed), \(number): \(story.joined(separator: "; ")): \(error)")
          if wrong == Self.maximumWrong { return }
        }
      }
    }
  }
#endif
