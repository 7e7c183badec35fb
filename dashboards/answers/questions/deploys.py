"""The question about deploys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboards.answers.deploys import MOST_ROWS, compared_deploys, compared_values, deploys, deploys_values
from dashboards.answers.questions.fields import DEPLOY
from dashboards.answers.questions.parameters import CLUSTER, GROUP, RANGE, SEEN, limit_of, window_of
from dashboards.answers.questions.question import ApiQuestion, Given, QuestionContext

LAST, *LIMITS = RANGE


def _deploys(asked: QuestionContext, given: Given) -> dict[str, Any]:
    group, cluster, limit = given["group"], given["cluster"] or "", given["limit"]
    found = deploys(asked.lake, window_of(asked, given), group=group, cluster=cluster)
    nothing = {"newest": None, "before": None, "comparison": None}
    pair = nothing if group is None else compared_values(compared_deploys(asked.lake, group, cluster=cluster))
    return deploys_values(found, limit, **asked.state) | pair


DEPLOYS = ApiQuestion(
    name="deploys",
    about="What deploys cost against those before, how long they took, who did not come back, and who was slow.",
    parameters=(
        replace(GROUP, about="id of the consumer group; without it, all groups", is_required=False),
        replace(CLUSTER, about="name of the cluster; without it, all clusters"),
        replace(LAST, default="7d"),
        *LIMITS,
        limit_of(MOST_ROWS),
    ),
    keys=SEEN
    | {
        "is_observed": "whether anything is known of the range",
        "deploys": "the deploys, newest first, each with the median cost of the group's deploys before it",
        "is_whole": "whether all are listed; if not, ask for a shorter range",
        "newest": "the newest deploy of the group, of any time; null without a group, or if there is none",
        "before": "the deploy before that",
        "comparison": "what was worse of the two, in sentences; null if there are no two",
    },
    answer=_deploys,
    fields={"deploys": DEPLOY._replace(is_list=True), "newest": DEPLOY, "before": DEPLOY},
)
