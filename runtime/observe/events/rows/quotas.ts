/** The rows of events about quotas. */
import type { EventTable } from '../row.ts'
import { checkRedis } from '../words.ts'

export const quotaRows = {
  quota_exceeded: {
    message: ({ enforced }) =>
      enforced ? 'a quota refused a call' : 'a call is over a quota that only warns, and goes on',
    level: 'info',
    repeats: ({ quota, enforced }) => `${quota} ${enforced}`,
  },
  quota_level: {
    message: ({ after }) => {
      if (after === 'below') return 'a quota is not used up any more'
      return after === 'near' ? 'a quota is used to 80 % and more' : 'a quota is used up'
    },
    level: ({ after, blocks }) => (after === 'exhausted' && blocks ? 'warn' : 'info'),
    condition: ({ quota, per, after, until, blocks }) => ({
      id: `quota_level/${quota}`,
      open:
        after === 'below'
          ? undefined
          : {
              message: `quota ${quota} ${levelText(after, blocks)} ${whose(per)} until ${until}`,
              fix: `raise limit of ${quota} in quotas if this use is meant; the audit log has the calls, and under quotas those that were over it`,
            },
    }),
  },
  quota_store: {
    message: ({ up }) => (up ? 'quotas are enforced again' : 'quotas cannot be checked'),
    level: ({ up }) => (up ? 'info' : 'warn'),
    condition: ({ up }) => ({
      id: 'quota_store',
      open: up ? undefined : { message: 'quotas cannot be checked: calls are allowed', fix: checkRedis },
    }),
  },
  quota_memory_full: {
    message: 'there is no memory for budgets of further callers: they share one for each quota',
    level: 'warn',
    repeats: () => '',
  },
  tool_unmatched: {
    message: ({ resolved }) =>
      resolved
        ? 'settings name this tool no more, or it is offered now'
        : 'settings name tools that no backend offers',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ problem, resolved }) => ({
      id: `tool_unmatched/${problem}`,
      open: resolved
        ? undefined
        : {
            message: problem,
            fix: "write the tool's name at its backend, not the name that clients see, or remove the setting",
          },
    }),
  },
  cost_unreadable: {
    message:
      'a backend reports a cost that is no whole number of micro-units: the configured cost is counted',
    level: 'warn',
  },
} satisfies Partial<EventTable>

function levelText(after: string, blocks: boolean): string {
  if (after === 'near') return 'is used to 80 % and more'
  return blocks ? 'is used up, and calls are refused,' : 'is used up, and calls go on,'
}

function whose(per: string): string {
  return per === 'server' ? 'for the whole server' : `for at least one ${per}`
}
