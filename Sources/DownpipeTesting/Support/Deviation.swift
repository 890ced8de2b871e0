package import DownpipeCore

/// A difference between what a stage did and what its contract says.
package struct Deviation: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

/// Throws a ``Deviation`` unless the condition holds.
package func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
  if !condition { throw Deviation(otherwise()) }
}

/// Throws a ``Deviation`` unless the values are equal.
package func expectEqual<Value: Equatable>(_ found: Value, _ wanted: Value, _ what: @autoclosure () -> String) throws {
  if found != wanted { throw Deviation("\(what()) is \(found) instead of \(wanted)") }
}

/// Returns the value; throws a ``Deviation`` when it is `nil`.
package func expectValue<Value>(_ value: Value?, _ otherwise: @autoclosure () -> String) throws -> Value {
  guard let value else { throw Deviation(otherwise()) }
  return value
}

/// Returns the ``DownloadError`` that the body throws; throws a ``Deviation`` when it throws nothing, another error, or
/// an error with none of the given codes. Without codes every code is accepted.
@discardableResult
package func expectError(
  _ codes: DownloadError.Code..., when what: String, _ body: () async throws -> Void
) async throws -> DownloadError {
  do {
    try await body()
  } catch let error as DownloadError {
    try expect(
      codes.isEmpty || codes.contains(error.code),
      "\(what): it threw \(error), whose code should be \(codes.map(\.rawValue).joined(separator: " or "))")
    return error
  } catch {
    throw Deviation("\(what): it threw \(String(reflecting: type(of: error))) instead of a DownloadError: \(error)")
  }
  throw Deviation("\(what): nothing was thrown")
}
