public import Testing

extension Trait where Self == TimeLimitTrait {
  /// The time limit of every suite. It ends tests that hang; no test is decided by it. The tests of a run start together
  /// and the limit counts from then, so it covers a slow machine that does other work.
  public static var endsHangs: Self { .timeLimit(.minutes(30)) }
}
