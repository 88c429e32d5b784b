import type { EventFields } from '../fields.ts'
import type { EventTable } from '../row.ts'
import { checkRedis } from '../next-steps.ts'

export const quotaRows = {
  quota_exceeded: {
    message: ({ enforced }) =>
      enforced ? 'a quota rejected a call' : 'a call exceeded a quota that only warns, and was allowed',
    level: 'info',
    repeats: ({ quota, enforced }) => `${quota} ${enforced}`,
  },
  quota_level: {
    message: ({ after }) => {
      if (after === 'below') return 'a quota is no longer exhausted'
      return after === 'near' ? 'a quota is at 80% or more' : 'a quota is exhausted'
    },
    level: ({ after, blocks }) => (after === 'exhausted' && blocks ? 'warn' : 'info'),
    condition: ({ quota, per, after, until, blocks }) => ({
      id: `quota_level/${quota}`,
      open:
        after === 'below'
          ? undefined
          : {
              message: levelText({ quota, per, after, until, blocks }),
              fix: `raise the limit of ${quota} in quotas if this usage is expected; the audit log contains the calls, and its quotas field marks those over the limit`,
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
    message: 'no memory left for the budgets of further callers: they share one budget per quota',
    level: 'warn',
    repeats: () => '',
  },
  tool_unmatched: {
    message: ({ resolved }) =>
      resolved
        ? 'the settings no longer refer to this tool, or the tool is now offered'
        : 'settings refer to tools that no backend offers',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ problem, resolved }) => ({
      id: `tool_unmatched/${problem}`,
      open: resolved
        ? undefined
        : {
            message: problem,
            fix: "use the tool's name on its backend instead of the name that clients see, or remove the setting",
          },
    }),
  },
  cost_unreadable: {
    message:
      'a backend reported an invalid cost, which must be a whole number of micro-units: the configured cost is used',
    level: 'warn',
  },
} satisfies Partial<EventTable>

function levelText({ quota, per, after, until, blocks }: EventFields['quota_level']): string {
  if (after === 'near') return `quota ${quota} is at 80% or more ${whose(per)} until ${until}`
  return `quota ${quota} is exhausted ${whose(per)} until ${until}: calls are ${blocks ? 'rejected' : 'still allowed'}`
}

function whose(per: string): string {
  return per === 'server' ? 'for the whole server' : `for at least one ${per}`
}
