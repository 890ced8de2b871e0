package import DownpipeCore

/// Counts calls by operation and decides which of them fail.
package struct FaultPlan<Operation: Hashable & Sendable>: Sendable {
  private struct Fault {
    let calls: ClosedRange<Int>
    let error: DownloadError
  }

  private var counts: [Operation: Int] = [:]
  private var faults: [Operation: [Fault]] = [:]

  package init() {}

  /// The number of calls so far.
  package func count(_ operation: Operation) -> Int { counts[operation, default: 0] }

  /// Makes `times` calls fail, starting with call number `call`, counted from 1.
  package mutating func fail(_ operation: Operation, at call: Int, times: Int, with error: DownloadError) {
    guard times > 0 else { return }
    let last = call.addingReportingOverflow(times - 1)
    faults[operation, default: []].append(Fault(calls: call...(last.overflow ? .max : last.partialValue), error: error))
  }

  /// Counts a call and returns its planned error; `nil` when it should succeed.
  package mutating func next(_ operation: Operation) -> DownloadError? {
    counts[operation, default: 0] += 1
    let call = counts[operation, default: 0]
    return faults[operation]?.first { $0.calls.contains(call) }?.error
  }
}
