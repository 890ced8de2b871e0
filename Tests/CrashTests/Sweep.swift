#if SQLite
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  /// Which calls of a run are disturbed: all, or as many as there is time for, chosen by a seed.
  ///
  /// `DOWNPIPE_CRASH_CALLS` is how many of each sweep, `all` for every one; `DOWNPIPE_CRASH_SEED` chooses others.
  struct Sweep {
    static let seed = ProcessInfo.processInfo.environment["DOWNPIPE_CRASH_SEED"].flatMap(UInt64.init) ?? 1
    private static let wanted = ProcessInfo.processInfo.environment["DOWNPIPE_CRASH_CALLS"]
    /// Beyond this many wrong cases the sweep ends: they are likely one bug.
    private static let maximumWrong = 5

    let name: String
    let numbers: [Int]

    init(_ name: String, calls count: Int, usually usual: Int) {
      self.name = name
      var generator = SeededGenerator(seed: Self.seed)
      let most = Self.wanted == "all" ? count : Self.wanted.flatMap { Int($0) } ?? usual
      numbers = Array((1...max(1, count)).shuffled(using: &generator).prefix(most)).sorted()
    }

    /// Tries each number, and reports which of them go wrong; `attempt` gives the words for what was disturbed.
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
