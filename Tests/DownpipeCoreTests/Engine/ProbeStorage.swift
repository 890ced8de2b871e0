import DownpipeCore
import DownpipeTesting

/// A fake storage that records its use, and can be held during an operation.
final class ProbeStorage: StorageWrapper {
  private struct State: Sendable {
    var held: Set<FakeStorage.Operation> = []
    var waiting: [FakeStorage.Operation: Int] = [:]
    var openings: [Bool] = []
  }

  let base: any Storage
  private let state = Watched(State())

  init(_ base: FakeStorage = FakeStorage()) { self.base = base }

  /// Makes every call of an operation wait until ``release()``, or until its task is cancelled.
  func hold(_ operation: FakeStorage.Operation) { state.update { _ = $0.held.insert(operation) } }

  func release() { state.update { $0.held = [] } }

  /// Waits until the given number of calls of an operation have been held.
  func held(_ operation: FakeStorage.Operation, atLeast count: Int = 1) async {
    await state.wait { $0.waiting[operation, default: 0] >= count }
  }

  /// The `isNew` argument of each opening.
  var openings: [Bool] { state.value.openings }

  private func pass(_ operation: FakeStorage.Operation) async throws {
    guard state.value.held.contains(operation) else { return }
    state.update { $0.waiting[operation, default: 0] += 1 }
    await state.wait { !$0.held.contains(operation) }
    try Task.checkCancellation()
  }

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    state.update { $0.openings.append(isNew) }
    try await pass(.openPartial)
    return ProbePartial(base: try await base.openPartial(key, isNew: isNew), isNew: isNew)
  }

  func removePartial(_ key: PartialKey) async throws {
    try await pass(.removePartial)
    try await base.removePartial(key)
  }

  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await pass(.publish)
    return try await base.publish(
      artifact, of: (partial as? ProbePartial)?.base ?? partial, at: destination, in: context)
  }
}

/// A partial that gets its name only when it needs one.
private struct ProbePartial: PartialWrapper {
  let base: any Partial
  private let hasName: Watched<Bool>

  init(base: any Partial, isNew: Bool) {
    self.base = base
    hasName = Watched(!isNew)
  }

  var isNamed: Bool { hasName.value }
  func synchronize() async throws {
    try await base.synchronize()
    hasName.update { $0 = true }
  }
  func persist() throws {
    try base.persist()
    hasName.update { $0 = true }
  }
}

/// Wraps any storage as a stage.
struct AnyStorage: StorageWrapper {
  let base: any Storage
  init(_ base: any Storage) { self.base = base }
}
