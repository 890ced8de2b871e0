#if Archive
  import DownpipeGzip

  extension OutputLimit {
    /// The limit for the decompressed bytes of an archive, which are read and not written: headers, padding, and entries
    /// that are left out.
    var withHeaders: OutputLimit {
      let (sum, isTooMuch) = byteCount.addingReportingOverflow(4 << 30)
      return OutputLimit(byteCount: isTooMuch ? .max : sum, explanation: explanation)
    }
  }
#endif
