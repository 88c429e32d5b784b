/**
 * Every field of the CRDs that names another object is asked for: what `customize` forgets, a sync takes for missing for ever.
 */
import t from 'tap'
import { makeHooks } from '../../../hooks/index.ts'
import { referenceFields, resourceOf, wantedName } from '../../helpers/hooks/reference-fields.ts'
import { resource, testSettings } from '../../hooks/world.ts'

const hooks = makeHooks(testSettings)

/** What looks like a reference, and no sync reads. */
const unread: Readonly<Record<string, string>> = {
  backendRef: 'a backend may be in no manifest at all',
  imagePullSecrets: 'the kubelet reads them',
}

/** Whether the rules of the object select the wanted one. */
function isAsked(kind: string, spec: unknown, plural: string): boolean {
  const parent = resource(kind, 'one', spec)
  const { relatedResources = [] } = hooks.byKind(kind)?.customize({ controller: {}, parent }) ?? {}
  return relatedResources.some(
    (rule) => rule.resource === plural && (rule.names === undefined || rule.names.includes(wantedName)),
  )
}

for (const { kind, fields } of referenceFields()) {
  t.test(`${kind}: ${fields.length} fields name an object, and customize asks for each`, async (t) => {
    for (const { path, field, spec } of fields) {
      const plural = resourceOf(field)
      if (plural !== 'secrets')
        t.notOk(isAsked(kind, spec, 'secrets'), `${path}: no Secret of that name reaches the hooks`)
      if (Object.hasOwn(unread, field)) continue
      if (plural === undefined) t.fail(`${path}: what does it name?`)
      else t.ok(isAsked(kind, spec, plural), `${path}: ${plural}`)
    }
  })
}
