/** Decides which accounts of another issuer may use the servers. */
import { localIssuer } from '../../../net/index.ts'

/**
 * Returns policies that permit the owner's programs and the accounts in `allow`: email addresses, `@domain` for all
 * addresses of a domain, or `*` for every account of the issuer.
 */
export function policiesFor(allow: readonly string[]): readonly string[] {
  // The policy does not match by subject, because an account of the issuer could have the same subject as the owner.
  const owner = `permit(principal, action, resource) when { principal.issuer == "${localIssuer}" };`
  const accounts = allow.map((rule) => {
    if (rule === '*') return 'permit(principal, action, resource);'
    const test = rule.startsWith('@') ? `like "*${rule}"` : `== "${rule}"`
    return `permit(principal, action, resource) when { principal has claim_email && principal.claim_email ${test} };`
  })
  return [owner, ...accounts]
}

/**
 * Matches the accepted values of `--login-allow`. Except for `*` alone, the values contain neither quotes nor `*`,
 * which have special meanings in policies.
 */
export const allowPattern = /^(?:\*|(?:[A-Za-z0-9._%+-]{1,64})?@[A-Za-z0-9.-]{1,255})$/
