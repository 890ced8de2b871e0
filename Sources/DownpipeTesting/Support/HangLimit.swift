extension Duration {
  /// The limit of everything that ends only if something hangs, such as a rule of a conformance suite: five minutes.
  ///
  /// No result depends on it. A stage that is slow on a busy machine passes; a stage that waits for ever fails after
  /// this time.
  public static let hangLimit: Duration = .seconds(300)
}
