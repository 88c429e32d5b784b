/**
 * Rules for the issuers that a server accepts. Hooks check them before they write a file; the runtime checks them when
 * it starts.
 * Source: docs/guides/oidc.md, "Several issuers".
 */

/** The settings of one issuer that affect the other issuers. */
export interface IssuerSettings {
  readonly issuer?: string | undefined
  readonly introspectionUrl?: string | undefined
  readonly subjectPrefix?: string | undefined
  readonly groupPrefix?: string | undefined
}

export interface IssuerViolation {
  /** Index of the issuer; 0 is the one with unchanged subjects. */
  readonly index: number
  readonly field: keyof IssuerSettings
  readonly message: string
}

/** Returns the prefix of an issuer's subjects. The first issuer of a server has none. */
export function subjectPrefixOf({ issuer, subjectPrefix }: IssuerSettings): string {
  return subjectPrefix ?? `${issuer}#`
}

/** Returns the prefix of an issuer's groups and roles. If empty, they are the same groups as the first issuer's. */
export function groupPrefixOf({ issuer, groupPrefix }: IssuerSettings): string {
  return groupPrefix ?? `${issuer}#`
}

/**
 * Returns the conflicts between several issuers; empty for a single issuer. No prefix may be the beginning of another,
 * so that users of different issuers never have equal subjects.
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
    return [
      ...(before.some((other) => other.issuer === issuer)
        ? [{ index, field: 'issuer' as const, message: `${issuer} is listed twice` }]
        : []),
      ...(introspectionUrl !== undefined && index !== introspecting
        ? [
            {
              index,
              field: 'introspectionUrl' as const,
              message: 'only one issuer can have it, because opaque tokens do not name their issuer',
            },
          ]
        : []),
      ...prefixViolations(own, before.slice(1)).map((message) => ({
        index,
        field: 'subjectPrefix' as const,
        message,
      })),
      ...groupPrefixViolations(own, before.slice(1)).map((message) => ({
        index,
        field: 'groupPrefix' as const,
        message,
      })),
    ]
  })
}

function prefixViolations(own: IssuerSettings, before: readonly IssuerSettings[]): readonly string[] {
  const prefix = subjectPrefixOf(own)
  const other = before
    .map(subjectPrefixOf)
    .find((known) => known.startsWith(prefix) || prefix.startsWith(known))
  return other === undefined || before.some(({ issuer }) => issuer === own.issuer)
    ? []
    : [`conflicts with the prefix ${other}: neither prefix may be the beginning of the other`]
}

/** Two issuers can deliberately share their groups, with equal prefixes or without prefixes. */
function groupPrefixViolations(own: IssuerSettings, before: readonly IssuerSettings[]): readonly string[] {
  const prefix = groupPrefixOf(own)
  const other = before
    .map(groupPrefixOf)
    .find(
      (known) =>
        known !== '' &&
        prefix !== '' &&
        known !== prefix &&
        (known.startsWith(prefix) || prefix.startsWith(known)),
    )
  return other === undefined
    ? []
    : [`conflicts with the prefix ${other}: neither prefix may be the beginning of the other`]
}
