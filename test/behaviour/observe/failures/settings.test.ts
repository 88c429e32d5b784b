/** Each of these failures is driven against a running server, and five views tell the same of it. */
import t from 'tap'
import { settingFailures } from '../../../helpers/failures/settings.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, settingFailures)
