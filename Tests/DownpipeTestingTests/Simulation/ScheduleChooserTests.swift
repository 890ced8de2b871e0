import HangLimit
import Testing

@testable import DownpipeTesting

/// How the next job is chosen.
@Suite(.endsHangs)
struct ScheduleChooserTests {
  /// The choices among ready jobs whose numbers change in a regular way.
  private func choices(of chooser: inout ScheduleChooser, steps: Int = 1_000) -> [Int] {
    (0..<steps).map { step in chooser.choose(among: 1 + step % 7) { UInt64(($0 + step) % 9) } }
  }

  @Test("in order: the job that has waited longest")
  func inOrder() {
    var chooser = ScheduleChooser(.inOrder, seed: 1)
    #expect(choices(of: &chooser).allSatisfy { $0 == 0 })
    #expect(!chooser.needsTasks)
  }

  @Test("random walk: each job with the same probability, and one seed has one sequence")
  func randomWalk() {
    var (first, second, other) = (
      ScheduleChooser(.randomWalk, seed: 1), ScheduleChooser(.randomWalk, seed: 1),
      ScheduleChooser(.randomWalk, seed: 2)
    )
    let chosen = choices(of: &first)
    #expect(chosen == choices(of: &second))
    #expect(chosen != choices(of: &other))
    var counts = [0, 0, 0, 0]
    for _ in 0..<4_000 { counts[first.choose(among: 4) { _ in 0 }] += 1 }
    #expect(counts.allSatisfy { (850...1_150).contains($0) }, "\(counts)")
  }

  @Test("replay: the recorded choices, then in order; choices that do not fit are reduced")
  func replay() {
    var walk = ScheduleChooser(.randomWalk, seed: 3)
    let chosen = choices(of: &walk)
    var replay = ScheduleChooser(replaying: walk.choices)
    #expect(choices(of: &replay) == chosen)
    #expect(replay.choices == walk.choices)
    #expect(replay.choose(among: 5) { _ in 0 } == 0)
    var other = ScheduleChooser(replaying: [6])
    #expect(other.choose(among: 4) { _ in 0 } == 2)
    #expect(!other.needsTasks)
  }

  @Test("PCT: the task of the highest priority runs until a change lowers it below all others")
  func priorities() {
    for seed in 0..<50 as Range<UInt64> {
      var chooser = ScheduleChooser(.priorities(changes: 3), seed: seed)
      #expect(chooser.needsTasks)
      // Five tasks are always ready: the order in which they run first is that of their priorities.
      let tasks = (0..<4_000).map { _ in chooser.choose(among: 5) { UInt64($0) } }
      let runs = tasks.reduce(into: [Int]()) { if $0.last != $1 { $0.append($1) } }
      // Each change ends one run, and a task that has fallen behind does not run again while four others are ready.
      #expect(runs.count == 4, "seed \(seed): \(runs)")
      #expect(Set(runs).count == 4)
    }
  }

  @Test("PCT: the choice depends on tasks, not on the order in which they became ready")
  func order() {
    var (first, second) = (
      ScheduleChooser(.priorities(changes: 3), seed: 5), ScheduleChooser(.priorities(changes: 3), seed: 5)
    )
    // The priorities are drawn in the order in which the tasks are seen first.
    for chooser in [0, 1, 2, 3] as [UInt64] {
      _ = first.choose(among: 1) { _ in chooser }
      _ = second.choose(among: 1) { _ in chooser }
    }
    for _ in 0..<4_000 {
      let (one, other) = (first.choose(among: 4) { UInt64($0) }, second.choose(among: 4) { UInt64(3 - $0) })
      #expect(one == 3 - other)
    }
  }
}
