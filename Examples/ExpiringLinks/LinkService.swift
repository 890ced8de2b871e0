import Foundation

/// Hands out links to the film, as an app's own server does: each lives for a few seconds, each leads to another host.
actor LinkService {
  /// What it has to offer: taken in turn, over and over.
  struct Offer: Sendable {
    /// Where the link leads.
    var host: CDN
    /// How it says when it dies.
    var form: LinkSigner.Form
    /// How long it lives.
    var seconds: TimeInterval
  }

  private let offers: [Offer]
  private let now: @Sendable () -> Date
  /// How many it has handed out.
  private(set) var count = 0

  init(_ offers: [Offer], now: @escaping @Sendable () -> Date) {
    self.offers = offers
    self.now = now
  }

  /// A link that lives from now on.
  func freshLink() -> URL {
    let offer = offers[count % offers.count]
    count += 1
    return offer.host.link(until: now().addingTimeInterval(offer.seconds), offer.form)
  }
}
