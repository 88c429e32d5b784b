/** The rows of events about the web console. */
import type { EventTable } from '../row.ts'

const maxNamed = 5

export const consoleRows = {
  console_action: {
    message: 'an action in the console',
    level: ({ outcome }) => (outcome === 'success' ? 'info' : 'warn'),
    repeats: ({ operation, outcome, user = '', target = '' }) => `${operation} ${outcome} ${user} ${target}`,
  },
  console_policies: {
    message({ failing, unusable }) {
      if (unusable) return 'the policies of the console cannot be used; nobody has a role'
      return failing.length > 0
        ? 'a policy of the console could not be evaluated; such a permit permits nothing, such a forbid refuses'
        : 'the policies of the console that failed are not in force any more'
    },
    level: ({ failing, unusable }) => (unusable ? 'error' : failing.length > 0 ? 'warn' : 'info'),
    // Each failure of a policy is told once, also where the list of those that fail is the same.
    isNews: true,
    repeats: ({ policy = '', reason = '' }) => `${policy} ${reason}`,
    condition: ({ failing, unusable }) => ({ id: 'console_policies', open: problemOf(failing, unusable) }),
  },
  console_user_untold: {
    message: 'somebody has no role in the console: the policies cannot be told who that is',
    level: 'warn',
    repeats: ({ reason }) => reason,
  },
} satisfies Partial<EventTable>

function problemOf(failing: readonly string[], unusable: boolean | undefined) {
  if (unusable)
    return {
      message: 'the policies of the console cannot be used: nobody has a role',
      fix: 'correct config.console.authz: the log has the error',
    }
  if (failing.length === 0) return undefined
  const more = failing.length - maxNamed
  const named = failing.slice(0, maxNamed).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return {
    message: `policies of the console could not be evaluated: ${named}; such a permit grants nothing, such a forbid refuses`,
    fix: 'correct config.console.authz: this event in the log has the reason of each; test with has what users may lack',
  }
}
