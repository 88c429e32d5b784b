import type { EventTable } from '../row.ts'

const maxNamed = 5

export const consoleRows = {
  console_action: {
    message: 'console action',
    level: ({ outcome }) => (outcome === 'success' ? 'info' : 'warn'),
    repeats: ({ operation, outcome, user = '', target = '' }) => `${operation} ${outcome} ${user} ${target}`,
  },
  console_policies: {
    message({ failing, unusable }) {
      if (unusable) return 'the console policies cannot be used; no user has a role'
      return failing.length > 0
        ? 'a console policy could not be evaluated; a failing permit grants nothing, and a failing forbid denies access'
        : 'the failing console policies are no longer in force'
    },
    level: ({ failing, unusable }) => (unusable ? 'error' : failing.length > 0 ? 'warn' : 'info'),
    // Logs each policy failure once, even when the list of failing policies stays the same.
    isNews: true,
    repeats: ({ policy = '', reason = '' }) => `${policy} ${reason}`,
    condition: ({ failing, unusable }) => ({ id: 'console_policies', open: problemOf(failing, unusable) }),
  },
  console_user_untold: {
    message: 'a console user has no role: the user cannot be represented in the policies',
    level: 'warn',
    repeats: ({ reason }) => reason,
  },
} satisfies Partial<EventTable>

function problemOf(failing: readonly string[], unusable: boolean | undefined) {
  if (unusable)
    return {
      message: 'the console policies cannot be used: no user has a role',
      fix: 'correct config.console.authz: see the error in the log',
    }
  if (failing.length === 0) return undefined
  const more = failing.length - maxNamed
  const named = failing.slice(0, maxNamed).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return {
    message: `console policies could not be evaluated: ${named}; a failing permit grants nothing, and a failing forbid denies access`,
    fix: 'correct config.console.authz: this log event contains each reason; test optional attributes with `has`',
  }
}
