import DownpipeCore
import Foundation

@testable import DownpipeBackgroundURLSession

/// Carries out the effects of the transfers in memory and records the results.
struct World {
  typealias Event = BackgroundTransfers.Event
  typealias Effect = BackgroundTransfers.Effect

  var transfers: BackgroundTransfers
  var effects: [Effect] = []
  var outcomes: [Int: [BackgroundTransfers.Outcome]] = [:]
  /// The tasks that were started, numbered from 100.
  var started: [(task: Int, opening: Int, tag: TransferTag)] = []
  var resumed: [Int] = []
  var cancelled: [Int] = []
  var removed: [String] = []
  var called: [[Int]] = []
  var clocks: [Int] = []
  /// Delivered files that have not been released.
  var out: [String] = []
  var isDiskFull = false

  init(_ files: [InboxEntry] = []) {
    transfers = BackgroundTransfers(files: files)
    tell(.attached)
  }

  mutating func tell(_ event: Event) {
    for effect in transfers.handle(event) {
      effects.append(effect)
      switch effect {
      case .start(let opening, let tag):
        let task = 100 + started.count
        started.append((task, opening, tag))
        tell(.started(opening, task: task))
      case .resume(let task): resumed.append(task)
      case .cancel(let task): cancelled.append(task)
      case .keep(let task, let temporary, _, _):
        if isDiskFull {
          tell(.notKept(task: task, DownloadError(.noSpace, "full")))
        } else {
          tell(.kept(task: task, entry: "entry-\(temporary)"))
        }
      case .remove(let entry): removed.append(entry)
      case .deliver(let opening, let outcome):
        outcomes[opening, default: []].append(outcome)
        if case .file(let entry, _, _) = outcome { out.append(entry) }
      case .awaitHandOver(let round): clocks.append(round)
      case .callHandlers(let handlers): called.append(handlers)
      }
    }
  }

  mutating func take() {
    for entry in out { tell(.released(entry: entry, isGone: true)) }
    out = []
  }

  func code(_ opening: Int) -> DownloadError.Code? {
    if case .failure(let error) = outcomes[opening]?.last { error.code } else { nil }
  }
}

/// Every order of the numbers below `count` in which the first of each pair in `before` comes before the second.
func orders(_ count: Int, before: [(Int, Int)]) -> [[Int]] {
  func extend(_ order: [Int]) -> [[Int]] {
    if order.count == count { return [order] }
    return (0..<count).filter { next in
      !order.contains(next) && before.allSatisfy { $0.1 != next || order.contains($0.0) }
    }.flatMap { extend(order + [$0]) }
  }
  return extend([])
}

extension FinishedAnswer {
  /// An answer with the whole file.
  static let whole = FinishedAnswer(status: 200, headers: [], url: "https://example.org/film.mkv")
}

func task(_ number: Int, _ tag: TransferTag) -> BackgroundTransfers.TaskReference {
  .init(number: number, description: tag.text)
}

func finished(_ number: Int, _ tag: TransferTag, _ answer: FinishedAnswer = .whole) -> BackgroundTransfers.Event {
  .finished(task(number, tag), answer, temporary: "\(number)")
}
