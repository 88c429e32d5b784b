import type { ResourceLinks } from '../catalog/resource-links.ts'
import type { VmcpConfig } from '../../config/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Events } from '../../observe/index.ts'
import type { Link, Operation, Feature } from '../model/operation.ts'
import type { Outcome } from '../model/outcome.ts'
import type { ToolEntry } from '../model/catalog/entries.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'
import type { PinReason } from '../model/catalog/pinning.ts'
import type { SignIns } from '../backends/sign-ins.ts'
import { type AppNameParts, resolveAppNames } from '../features/apps/names.ts'
import { rewriteAppResults } from '../features/apps/results.ts'
import { makePageCheck } from '../features/apps/page-locks.ts'
import { checkPinnedArguments, refusal } from '../features/pinning/refusal.ts'
import { makeSkillLinks } from '../features/skills/links.ts'
import type { TaskFeature } from '../features/tasks/index.ts'
import { readableQuotas } from '../features/quotas/refusal.ts'
import { spendQuota } from '../features/quotas/spending.ts'
import { originsOfPage } from '../catalog/pages.ts'
import { resolveAliases, showAliases } from './aliases.ts'
import { authorize, type AuthorizeOptions, permissionCheck, permissionRequirement } from './authorize.ts'
import type { ChainEntries, ChainLinks } from './chain.ts'
import type { Core } from './core.ts'
import type { Guards } from './guards.ts'
import { accessOf } from './extension-methods.ts'
import { rateLimit } from './rate-limit.ts'
import { offerSignIn } from './offer-sign-in.ts'
import { checkState, readableErrors, route, send } from './send.ts'
import { performStepWithWebhooks, askWebhooks } from './webhooks.ts'

/** The parts that a reload replaces. Each part is replaced as a whole. */
export interface LinkSources {
  readonly config: VmcpConfig
  readonly guards: Guards
  readonly features: readonly Feature[]
  readonly isOwnTool: (name: string) => boolean
}

export interface FixedParts {
  readonly core: Core
  readonly observe: Link | undefined
  readonly onDecision: NonNullable<AuthorizeOptions['onDecision']>
  readonly observer: AppNameParts['observer']
  readonly events: Events
  readonly signIns: SignIns | undefined
  /** True if the listener requires a token from every client. */
  readonly requiresToken: boolean
  readonly tasks: TaskFeature
}

/** Builds the links of the chain, once for each configuration. */
export function makeLinks(
  sources: LinkSources,
  { core, observe, onDecision, observer, events, signIns, requiresToken, tasks }: FixedParts,
): ChainLinks {
  const { config, guards, features } = sources
  const callParts = core.parts
  const { apps } = callParts
  const { maxToolNameLength } = config.aggregation
  const isOwnTool = (name: string): boolean => sources.isOwnTool(name)
  const { gate, webhooks, limiter } = guards
  const quotas = guards.quotas?.quotas
  const hasTasks = tasks.isEnabled()
  const hasAliases = maxToolNameLength > 0
  const refusePage = (entry: CatalogEntry, refused: PinReason) =>
    refusal({ ...entry, refused }, 'resources/read', core.pins)
  const factsOf: AuthorizeOptions['factsOf'] = async (client, request) => {
    // The catalog does not contain tools provided by features.
    if (request.action === 'call_tool' && isOwnTool(request.id)) return undefined
    return (await core.factsOf(client, request)) ?? 'no such thing'
  }
  const permission = gate && permissionRequirement({ gate, factsOf, onDecision })
  return {
    observe,
    ...(apps && {
      ...resolveAppNames({
        listings: apps,
        listOriginalNames: config.extensions?.apps?.listOriginalNames !== false,
        peek: (client) => core.peek(client),
        view: (client) => core.view(client, { waitForFresh: false }),
        isOwnTool,
        observer,
        ...(gate && { permits: permissionCheck(gate, factsOf) }),
      }),
      ...rewriteAppResults(apps, makePageCheck(config, apps.drift, refusePage)),
    }),
    listAliases: hasAliases ? showAliases((client) => core.peek(client).aliases) : undefined,
    listTasks: hasTasks ? tasks.list : undefined,
    features,
    callAliases: hasAliases
      ? resolveAliases(maxToolNameLength, (client, alias) => core.nameOf(client, alias))
      : undefined,
    openTask: hasTasks ? tasks.open : undefined,
    webhooks:
      webhooks &&
      askWebhooks({
        chain: webhooks,
        factsOf,
        isOwnTool,
        listResultMismatches: (operation, structured) => core.listResultMismatches(operation, structured),
      }),
    authorize:
      gate &&
      authorize({
        gate,
        onDecision,
        factsOf,
        peekFacts: (client, request) => core.peekFacts(client, request),
        originsOf: originsOfPage,
        accessOf: (operation) => accessOf(operation, callParts.extensions),
      }),
    offerSignIn: signIns && offerSignIn(signIns, { requiresToken }),
    resolveTarget: (featureTools) => core.resolveTarget(featureTools),
    rateLimit: limiter && rateLimit(limiter),
    readableQuotas: quotas && readableQuotas,
    ownTasks: hasTasks ? tasks.own : undefined,
    readableErrors: readableErrors(core),
    resourceLinks: callParts.onlyBackend === undefined ? recordResourceLinks(callParts.links) : undefined,
    ...skillLinks(core, config, permission),
    guardrail: callParts.guard?.link,
    route: route(core),
    pinnedArguments: callParts.views.awaitsAnnounced ? checkPinnedArguments(core.pins) : undefined,
    // If there are no quotas, `send` rejects the same operations with the same errors.
    requestState: quotas && checkState(core),
    quota:
      quotas &&
      spendQuota({ quotas, costUnreadable: (backend) => events.emit('cost_unreadable', { backend }) }),
    taskRelay: hasTasks ? tasks.relay : undefined,
    send: send(core),
  }
}

function skillLinks(
  core: Core,
  { operational }: VmcpConfig,
  permission: ReturnType<typeof permissionRequirement> | undefined,
): Partial<ChainLinks> {
  const { skills, members } = core.parts
  if (!skills) return {}
  return makeSkillLinks({
    ...skills,
    view: (client) => core.view(client, { waitForFresh: true }),
    peek: (client) => core.peek(client),
    sourceOf(name, client) {
      const { backend, listings } = members.get(name) ?? {}
      return backend && listings && { key: listings.keyOf(client), timeoutMs: backend.settings.timeoutMs }
    },
    failsWithoutAll: operational.failureHandling.partialFailureMode === 'fail',
    ...(permission && {
      requirePermission: (operation, uri) =>
        permission(operation, 'skills/get', new JsonObject(Buffer.from(JSON.stringify({ uri })))),
    }),
    refusalError: (entry, method) => refusal(entry, method, core.pins),
    cursors: core.cursors,
  })
}

/** Performs a workflow step with the tool that was resolved when the workflow started. */
export type PerformStep = (operation: Operation, tool: ToolEntry, timeoutMs?: number) => Promise<Outcome>

/** Returns the function that performs steps. Webhooks see a step's tool under the name that clients use. */
export function stepPerformer(
  core: Core,
  guards: () => Pick<Guards, 'webhooks'>,
  { performStep }: Pick<ChainEntries, 'performStep'>,
): PerformStep {
  return (operation, tool, timeoutMs) =>
    performStepWithWebhooks(
      guards().webhooks,
      operation,
      { name: tool.key, backend: tool.backend, original: tool.original },
      async (checked) => performStep({ ...checked, target: await core.stepTarget(checked, tool, timeoutMs) }),
    )
}

/** Records the resource links that the client receives. A later read of such a link reaches the same backend. */
function recordResourceLinks(links: ResourceLinks): Link {
  return async function recordResourceLinks(operation, next) {
    const outcome = await next(operation)
    const { target } = operation
    if (target && !target.run) links.remember(operation, target.entry.backend, outcome)
    return outcome
  }
}
