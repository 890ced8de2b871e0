internal import Foundation
internal import Synchronization

extension Exchange {
  /// Performs the exchange, and again without the lease if the disk was full.
  func perform(in context: EngineContext) async -> Answer {
    var exchange = self
    do { try exchange.request?.location = context.storage.location } catch {
      exchange.request = nil
      guard !unsaved.isEmpty || first != nil else {
        let error = DownloadError(error, as: .storage, stage: context.storageName)
        return Answer(exchange: exchange, result: .failure(error), mustLease: true)
      }
      // Outcomes are saved all the same; the next exchange leases.
    }
    exchange.first = exchange.first ?? exchange.request
    var result = await exchange.attempt(in: context)
    if case .failure = result {
      let full = unsaved.filter { one in
        one.isOutOfRoom && one.run.state.withLock { !$0.hasMadeRoom && $0.neededRoom == nil }
      }
      if !full.isEmpty {
        // The request's selector has counted downloads whose lease was rolled back: the next exchange leases.
        exchange.request = nil
        result = await exchange.attempt(in: context)
        if case .failure = result, await makeRoom(by: full) { result = await exchange.attempt(in: context) }
      }
    }
    return Answer(exchange: exchange, result: result, mustLease: request != nil && exchange.request == nil)
  }

  /// Frees space for the ledger on a full disk, once for each run.
  private func makeRoom(by runs: [UnsavedRun]) async -> Bool {
    var hasRoom = false
    for one in runs {
      one.run.state.withLock { $0.hasMadeRoom = true }
      if await one.run.makeRoomForTheLedger() { hasRoom = true }
    }
    return hasRoom
  }

  private func attempt(in context: EngineContext) async -> Result<LedgerExchange, any Error> {
    let saves = unsaved.map { LedgerSave($0.run.recordToSave, [.state, .checkpoint, .steps]) }
    do {
      let exchange = try await context.store.exchange(
        saves, leasing: request, at: request?.now ?? context.time.date, number: number)
      try context.checkAnswers(exchange.saved.count, to: saves.count, "saves")
      return .success(exchange)
    } catch {
      return .failure(error)
    }
  }
}
