/**
 * `customize` must request every field of the CRDs that names another object. Otherwise a sync would always treat the
 * object as missing. The offline check of Secrets and ConfigMaps must find the same fields.
 */
import t from 'tap'
import { secretReferences } from '../../../hooks/admission/secret-check.ts'
import { makeHooks } from '../../../hooks/index.ts'
import { referenceFields, resourceOf, wantedName } from '../../helpers/hooks/reference-fields.ts'
import { resource, testSettings } from '../../hooks/world.ts'

const hooks = makeHooks(testSettings)

/** Fields that look like references, but that no sync reads. */
const unread: Readonly<Record<string, string>> = {
  backendRef: 'a backend may be in no manifest at all',
  imagePullSecrets: 'the kubelet reads them',
}

/** Returns true when the rules of the object select the required resource. */
function isAsked(kind: string, spec: unknown, plural: string): boolean {
  const parent = resource(kind, 'one', spec)
  const { relatedResources = [] } = hooks.byKind(kind)?.customize({ controller: {}, parent }) ?? {}
  return relatedResources.some(
    (rule) => rule.resource === plural && (rule.names === undefined || rule.names.includes(wantedName)),
  )
}

for (const { kind, fields } of referenceFields()) {
  t.test(`${kind}: ${fields.length} fields name an object, and customize requests each`, async (t) => {
    for (const { path, field, spec } of fields) {
      const plural = resourceOf(field)
      if (plural !== 'secrets')
        t.notOk(isAsked(kind, spec, 'secrets'), `${path}: no Secret of that name reaches the hooks`)
      if (plural === 'secrets' || plural === 'configmaps')
        t.match(secretReferences(spec), [{ name: wantedName }], `${path}: found offline`)
      if (Object.hasOwn(unread, field)) continue
      if (plural === undefined) t.fail(`${path}: what does it name?`)
      else t.ok(isAsked(kind, spec, plural), `${path}: ${plural}`)
    }
  })
}
