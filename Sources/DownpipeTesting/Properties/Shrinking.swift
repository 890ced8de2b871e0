/// Shortens a sequence that fails, by leaving out operations as long as it still fails.
struct Shrinking {
  /// The sequence as it was found.
  let found: FailedSequence
  /// The number of sequences to try.
  var attempts = 400
  /// The longest time; a sequence that fails by waiting forever takes long.
  var limit: Duration = .hangLimit
  /// Returns how a sequence fails; `nil` if it does not.
  let run: (_ operations: [QueueOperation]) async -> FailedSequence?

  init(found: FailedSequence, run: @escaping (_ operations: [QueueOperation]) async -> FailedSequence?) {
    self.found = found
    self.run = run
  }

  /// Leaves out halves, quarters and so on, down to single operations, until no operation can be left out.
  func shortest() async -> FailedSequence {
    let clock = ContinuousClock()
    let end = clock.now + limit
    var best = found
    var left = attempts
    var size = max(1, best.operations.count / 2)
    while true {
      var isShorter = false
      var start = 0
      while start < best.operations.count {
        guard left > 0, clock.now < end, !Task.isCancelled else { return best }
        left -= 1
        var operations = best.operations
        operations.removeSubrange(start..<min(start + size, operations.count))
        if let failed = await run(operations) {
          best = failed
          isShorter = true
        } else {
          start += size
        }
      }
      if size > 1 { size /= 2 } else if !isShorter { return best }
    }
  }
}
