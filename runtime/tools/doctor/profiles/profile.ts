/** Facts about an identity provider that affect the fix. */
import type { FindingCode } from '../report/codes.ts'

export interface Profile {
  /** Value of `--provider`. */
  readonly id: string
  readonly title: string
  /** Matches an issuer's host name. */
  readonly host?: RegExp
  /** Matches an issuer's path, for self-hosted providers. */
  readonly path?: RegExp
  /** The provider's documentation page. */
  readonly docs: string
  /** Facts for operators, one per line. */
  readonly quirks: readonly string[]
  /** Fixes for this provider, keyed by code. */
  readonly fixes: Partial<Readonly<Record<FindingCode, string>>>
  /** Texts that appear in the provider's pages and redirects, each with its meaning. */
  readonly errors?: readonly KnownError[]
}

export interface KnownError {
  readonly match: RegExp
  readonly code: FindingCode
  readonly cause: string
  readonly fix: string
}
