package import DownpipeCore

/// Counts calls by what they do, and says which of them are to fail.
package struct FaultPlan<Operation: Hashable & Sendable>: Sendable {
  private struct Fault {
    let calls: ClosedRange<Int>
    let error: DownloadError
  }

  private var counts: [Operation: Int] = [:]
  private var faults: [Operation: [Fault]] = [:]

  package init() {}

  /// How many calls there have been.
  package func count(_ operation: Operation) -> Int { counts[operation, default: 0] }

  /// Lets `times` calls fail, the first of them the `call`th since the beginning, counted from 1.
  package mutating func fail(_ operation: Operation, at call: Int, times: Int, with error: DownloadError) {
    guard times > 0 else { return }
    let last = call.addingReportingOverflow(times - 1)
    faults[operation, default: []].append(Fault(calls: call...(last.overflow ? .max : last.partialValue), error: error))
  }

  /// Counts a call, and gives the error it is to fail with, if it is.
  package mutating func next(_ operation: Operation) -> DownloadError? {
    counts[operation, default: 0] += 1
    let call = counts[operation, default: 0]
    return faults[operation]?.first { $0.calls.contains(call) }?.error
  }
}
