internal import Foundation
internal import Synchronization

extension Exchange {
  /// Performs the exchange, once more without the lease if the disk was full.
  func perform(in context: EngineContext) async -> Answer {
    var request = request
    do { try request?.location = context.storage.location } catch {
      guard !unsaved.isEmpty else {
        let error = DownloadError(error, as: .storage, stage: context.storageName)
        return Answer(
          unsaved: [], result: .failure(error), lease: nil, mustLease: false, hasFailedToLease: false)
      }
      // Outcomes are saved all the same; the next exchange leases.
      request = nil
    }
    var result = await attempt(leasing: request, in: context)
    var lease = request
    var hasFailedToLease = false
    if case .failure = result {
      hasFailedToLease = request != nil
      // On a full disk, space for the ledger is freed, once for each run.
      var hasRoom = false
      for one in unsaved where one.isOutOfRoom && one.run.state.withLock({ !$0.hasMadeRoom && $0.neededRoom == nil }) {
        one.run.state.withLock { $0.hasMadeRoom = true }
        // Unless the outcome was saved all the same, and only the answer was lost.
        let isSaved = (try? await context.store.record(one.run.id)).map { $0?.phase.isActive != true } ?? false
        if !isSaved, await one.run.makeRoomForTheLedger() { hasRoom = true }
      }
      // The request's selector has counted downloads whose lease was rolled back: the next exchange leases.
      if hasRoom {
        result = await attempt(leasing: nil, in: context)
        lease = nil
      }
    }
    return Answer(
      unsaved: unsaved, result: result, lease: lease, mustLease: self.request != nil && lease == nil,
      hasFailedToLease: hasFailedToLease)
  }

  private func attempt(
    leasing request: LeaseRequest?, in context: EngineContext
  ) async -> Result<LedgerExchange, any Error> {
    let saves = unsaved.map { LedgerSave($0.run.recordToSave, [.state, .checkpoint, .steps]) }
    do {
      let exchange = try await context.store.exchange(saves, leasing: request, at: request?.now ?? context.time.date)
      try context.checkAnswers(exchange.saved.count, to: saves.count, "saves")
      return .success(exchange)
    } catch {
      return .failure(error)
    }
  }
}
