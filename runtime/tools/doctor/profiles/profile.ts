/** What is known of one identity provider, as far as it changes a fix. */
import type { FindingCode } from '../report/codes.ts'

export interface Profile {
  /** As `--provider` takes it. */
  readonly id: string
  readonly title: string
  /** Matches the host name of an issuer. */
  readonly host?: RegExp
  /** Matches the path of an issuer, for providers that people host themselves. */
  readonly path?: RegExp
  /** The provider's own page. */
  readonly docs: string
  /** What an operator should know, one fact per line. */
  readonly quirks: readonly string[]
  /** The fix for this provider, by code. */
  readonly fixes: Partial<Readonly<Record<FindingCode, string>>>
  /** What its pages and redirects say, and what that means. */
  readonly errors?: readonly KnownError[]
}

export interface KnownError {
  readonly match: RegExp
  readonly code: FindingCode
  readonly cause: string
  readonly fix: string
}
