/**
 * Rules for the issuers that a server accepts. Hooks check the rules before they write a file. The runtime checks the
 * rules when it starts.
 * Source: docs/guides/oidc.md, "Several issuers".
 */

import type { Dpop } from '../generated/types.ts'

/** The settings of one issuer that affect the other issuers. */
export interface IssuerSettings {
  readonly issuer?: string | undefined
  readonly introspectionUrl?: string | undefined
  readonly subjectPrefix?: string | undefined
  readonly groupPrefix?: string | undefined
}

export interface IssuerViolation {
  /** Index of the issuer. The subjects of issuer 0 stay unchanged. */
  readonly index: number
  readonly field: keyof IssuerSettings
  readonly message: string
}

/** Returns the default prefix of an issuer's subjects and groups. Issuer URLs never contain "#". */
export function issuerPrefix(issuer: string | undefined): string {
  return `${issuer ?? ''}#`
}

/** Returns the prefix of an issuer's subjects. The first issuer of a server has no prefix. */
export function subjectPrefixOf({ issuer, subjectPrefix }: IssuerSettings): string {
  return subjectPrefix ?? issuerPrefix(issuer)
}

/**
 * Returns the prefix of an issuer's groups and roles. With an empty prefix, the issuer shares its groups with the first
 * issuer.
 */
export function groupPrefixOf({ issuer, groupPrefix }: IssuerSettings): string {
  return groupPrefix ?? issuerPrefix(issuer)
}

/**
 * Returns the conflicts between several issuers; empty for a single issuer. No prefix may be the beginning of another
 * prefix. Otherwise, users of different issuers could have equal subjects.
 */
export function issuerViolations(issuers: readonly IssuerSettings[]): readonly IssuerViolation[] {
  if (issuers.length < 2) return []
  const introspecting = issuers.findIndex(({ introspectionUrl }) => introspectionUrl !== undefined)
  return issuers.flatMap((own, index): readonly IssuerViolation[] => {
    const { issuer, introspectionUrl } = own
    const before = issuers.slice(0, index)
    if (issuer === undefined) {
      return [{ index, field: 'issuer', message: 'is required when a server has several issuers' }]
    }
    if (before.some((other) => other.issuer === issuer)) {
      return [{ index, field: 'issuer', message: `${issuer} is listed twice` }]
    }
    return [
      ...(introspectionUrl !== undefined && index !== introspecting
        ? [
            {
              index,
              field: 'introspectionUrl' as const,
              message:
                'only one issuer can have this setting, because opaque tokens do not identify their issuer',
            },
          ]
        : []),
      ...prefixConflicts(prefixesOf(own), before.slice(1).map(prefixesOf)).map((conflict) => ({
        index,
        ...conflict,
      })),
    ]
  })
}

type Prefixes = Pick<IssuerSettings, 'subjectPrefix' | 'groupPrefix'>

function prefixesOf(issuer: IssuerSettings): Prefixes {
  return { subjectPrefix: subjectPrefixOf(issuer), groupPrefix: groupPrefixOf(issuer) }
}

/**
 * Returns the conflicts between an issuer's prefixes and those of `others`. Neither list may include the first issuer,
 * which has no prefixes. An undefined prefix does not conflict.
 */
export function prefixConflicts(
  own: Prefixes,
  others: readonly Prefixes[],
): readonly { readonly field: keyof Prefixes; readonly message: string }[] {
  return (['subjectPrefix', 'groupPrefix'] as const).flatMap((field) => {
    const prefix = own[field]
    const other = others.map((issuer) => issuer[field]).find((known) => doConflict(field, prefix, known))
    if (other === undefined) return []
    const message = `conflicts with the prefix ${other}: neither prefix may be the beginning of the other`
    return [{ field, message }]
  })
}

function doConflict(field: keyof Prefixes, a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return false
  // Issuers with equal prefixes, or without prefixes, share their groups deliberately.
  if (field === 'groupPrefix' && (a === b || a === '' || b === '')) return false
  return a.startsWith(b) || b.startsWith(a)
}

type DpopMode = Pick<Dpop, 'mode'>

/**
 * Checks that a server accepts the tokens that its embedded authorization server issues (DPoP, RFC 9449). Returns the
 * error in the server's own `dpop.mode`, or undefined if the mode is compatible with the authorization server's mode.
 */
export function dpopModeViolation(
  issued: DpopMode | undefined,
  own: DpopMode | undefined,
): string | undefined {
  const [issues = 'off', accepts = 'off'] = [issued?.mode, own?.mode]
  if (issues !== 'off' && accepts === 'off')
    return 'must not be off, because the embedded authorization server issues bound tokens'
  if (issues === 'off' && accepts === 'required')
    return 'must not be required, because the embedded authorization server issues no bound tokens'
  return undefined
}
