/** Converts an MCPToolLock's spec to the lock that the runtime reads. */
import { canonicalJson } from './canonical.ts'
import type { RuntimeLockedItem, RuntimeToolLock } from './generated/input.ts'
import type { ToolLockSpec } from './generated/types.ts'

/** Scheme for computing digests. The schema rejects a lock with another scheme. */
export const pinScheme = 'gatehouse.pin.v1'

/** `name` is the name of the MCPToolLock. */
export function runtimeToolLock(spec: ToolLockSpec, backend: string, name?: string): RuntimeToolLock {
  const { backendRef: _, server, tools, prompts, resourceTemplates, skills, ...settings } = spec
  return {
    ...(name !== undefined && { name }),
    backend,
    ...settings,
    ...(server?.instructions !== undefined && { instructions: server.instructions }),
    ...(tools && { tools: tools.map(runtimeItem) }),
    ...(prompts && { prompts: prompts.map(runtimeItem) }),
    ...(skills && { skills: skills.map(runtimeItem) }),
    ...(resourceTemplates && { resourceTemplates: resourceTemplates.map(runtimeItem) }),
  }
}

type LockedItem = NonNullable<ToolLockSpec['tools']>[number]

function runtimeItem({ name, variants, ...form }: LockedItem): RuntimeLockedItem {
  return {
    name,
    definition: textOf(form),
    ...(variants && variants.length > 0 && { variants: variants.map(textOf) }),
  }
}

function textOf({ definition, definitionText }: Pick<LockedItem, 'definition' | 'definitionText'>): string {
  return definitionText ?? canonicalJson(definition ?? {})
}
