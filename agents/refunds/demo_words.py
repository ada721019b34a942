"""What the demo model says, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from agents.refunds.demo_reading import Language
from agents.refunds.policy import Reason

_EN: Mapping[str, str] = {
    "look": "I will look up {orders} first.",
    "policy": "I will read the refund policy for this case.",
    "compute": "I will compute what the policy allows for {orders}.",
    "issue": "The policy allows it, so I propose this refund: {refunds}.",
    "issue_anyway": "My colleague agreed, so I propose this refund: {refunds}.",
    "which": "I need to know which order this is about, so I am asking a colleague.",
    "which_question": "No order number was given. Which order is this about, and what should be refunded? The message was: “{text}”",
    "unclear": "I am not sure what is wanted, so I am asking a colleague.",
    "unclear_question": "I could not tell what is wanted. What should I do? The message was: “{text}”",
    "doubt": "This is not clear from the policy, so I am asking a colleague.",
    "doubt_question": "{doubts} Should I refund anyway? If so, how much?",
    "doubt_undelivered": "Order {order} ({paid} paid) has not been delivered: its status is {status}, and RP-4 §5.1 asks for a carrier case first.",
    "doubt_other": "Order {order}: {why}",
    "unknown_order": "I could not find order {order}. Please check the number.",
    "unreadable": "I could not read order {order} just now because the shop did not answer. Nothing was refunded.",
    "nothing_left": "Everything paid for order {order} has been refunded already, so I did nothing.",
    "bad_amount": "I did not propose a refund for order {order}: {why}",
    "not_allowed": "I did not refund order {order}: {why}",
    "staff_no": "I did not refund order {order}. My colleague answered: “{answer}”",
    "staff_silent": "I did not refund order {order}: I asked a colleague, and there was no answer.",
    "no_order": "I still do not know which order this is about, so nothing was refunded. Please send the order number (for example A-20931).",
    "no_meaning": "I am afraid I still do not know what to do. My colleague answered: “{answer}”",
    "no_answer": "I asked a colleague, and there was no answer. Nothing was refunded.",
    "paid": "Order {order}: {amount} was refunded to the card ending in {last4}. Reference: {reference}. It arrives within 3 to 5 working days.",
    "paid_plain": "Order {order}: {amount} was refunded.",
    "paid_edited": "Order {order}: {amount} was refunded to the card ending in {last4}. A reviewer changed the amount; I had proposed {proposed}. Reference: {reference}.",
    "rejected": "Order {order} was not refunded: a reviewer rejected it.",
    "rejected_why": "Order {order} was not refunded: a reviewer rejected it. Reason: {why}",
    "expired": "Order {order} was not refunded: nobody decided in time. That is not a rejection; it can be asked for again.",
    "withdrawn": "Order {order} was not refunded: the request was withdrawn.",
    "superseded": "Order {order} was not refunded by this request: a newer one replaced it.",
    "elsewhere": "The refund of order {order} was handled elsewhere. I did not pay anything myself.",
    "unknown": "It is not known yet whether the refund of order {order} went through. A person is clarifying it; I will not send it again.",
    "limit": "Order {order} was not refunded: the limit of refunds for one request was reached.",
    "refused": "Order {order} was not refunded. The answer was: {why}",
    "waiting": "The refund of order {order} is still waiting for a person. Nothing was refunded yet.",
    "status_none": "No, I have not refunded anything in this conversation.",
    "info": "Order {order} ({items}) of {customer}: {paid} paid, {refunded} refunded, status {status}.",
    "no_tool": "I cannot refund order {order}: I have no tool for it.",
    "thanks": "You are welcome. Send me an order number if something should be refunded.",
    "note": "We are refunding your order {order} to your card ending in {last4}.",
    "and": ", ",
}  # fmt: skip
_ZH: Mapping[str, str] = {
    "look": "我先查询订单 {orders}。",
    "policy": "我来查阅适用的退款政策。",
    "compute": "我来计算 {orders} 按政策可退的金额。",
    "issue": "符合政策，我提议退款：{refunds}。",
    "issue_anyway": "同事已同意，我提议退款：{refunds}。",
    "which": "我需要知道是哪个订单，先请教一下同事。",
    "which_question": "消息里没有订单号。请问是哪个订单，要退什么？原文：“{text}”",
    "unclear": "我不确定需要做什么，先请教一下同事。",
    "unclear_question": "我没有看懂需要做什么，请问该怎么处理？原文：“{text}”",
    "doubt": "政策没有明确规定，我先请教一下同事。",
    "doubt_question": "{doubts}是否仍然退款？如果退，退多少？",
    "doubt_undelivered": "订单 {order}（已付 {paid}）尚未送达，状态为 {status}；RP-4 §5.1 要求先向承运商立案。",
    "doubt_other": "订单 {order}：{why} ",
    "unknown_order": "没有找到订单 {order}，请核对订单号。",
    "unreadable": "商店暂时没有响应，无法读取订单 {order}。没有退款。",
    "nothing_left": "订单 {order} 已全额退款，因此没有再退。",
    "bad_amount": "没有为订单 {order} 提议退款：{why}",
    "not_allowed": "没有为订单 {order} 退款：{why}",
    "staff_no": "没有为订单 {order} 退款。同事的答复：“{answer}”",
    "staff_silent": "没有为订单 {order} 退款：已请教同事，但没有答复。",
    "no_order": "仍不清楚是哪个订单，因此没有退款。请提供订单号（例如 A-20931）。",
    "no_meaning": "抱歉，我仍不清楚该怎么做。同事的答复：“{answer}”",
    "no_answer": "已请教同事，但没有答复。没有退款。",
    "paid": "订单 {order}：已将 {amount} 退回尾号 {last4} 的银行卡，参考号 {reference}，3 至 5 个工作日到账。",
    "paid_plain": "订单 {order}：已退款 {amount}。",
    "paid_edited": "订单 {order}：已将 {amount} 退回尾号 {last4} 的银行卡。审核人调整了金额，我原先提议 {proposed}。参考号 {reference}。",
    "rejected": "订单 {order} 未退款：审核人已拒绝。",
    "rejected_why": "订单 {order} 未退款：审核人已拒绝。理由：{why}",
    "expired": "订单 {order} 未退款：没有人及时处理。这不是拒绝，可以再次申请。",
    "withdrawn": "订单 {order} 未退款：申请已撤回。",
    "superseded": "订单 {order} 未通过此申请退款：已被新的申请取代。",
    "elsewhere": "订单 {order} 的退款已在其他渠道处理，我没有付款。",
    "unknown": "尚不清楚订单 {order} 的退款是否成功，正由专人核实，我不会重复提交。",
    "limit": "订单 {order} 未退款：单次申请的退款次数已达上限。",
    "refused": "订单 {order} 未退款。系统答复：{why}",
    "waiting": "订单 {order} 的退款仍在等待人工审核，尚未退款。",
    "status_none": "没有，在这次对话中我没有退过款。",
    "info": "订单 {order}（{items}），客户 {customer}：已付 {paid}，已退 {refunded}，状态 {status}。",
    "no_tool": "无法为订单 {order} 退款：我没有相应的工具。",
    "thanks": "不客气。需要退款时请把订单号发给我。",
    "note": "我们正在将订单 {order} 的款项退回您尾号 {last4} 的银行卡。",
    "and": "、",
}  # fmt: skip

_REASONS: Mapping[Language, Mapping[Reason, str]] = {
    "en": {
        "damaged": "damaged on arrival",
        "wrong_item": "wrong item",
        "not_delivered": "not delivered",
        "changed_mind": "changed mind, unopened",
        "late": "late delivery",
        "other": "goodwill",
    },
    "zh": {
        "damaged": "到货损坏",
        "wrong_item": "发错货",
        "not_delivered": "未收到货",
        "changed_mind": "不想要了，未拆封",
        "late": "配送延误",
        "other": "酌情退款",
    },
}


def say(language: Language, key: str, **values: str) -> str:
    return (_ZH if language == "zh" else _EN)[key].format(**values)


def reason_words(language: Language, reason: Reason) -> str:
    return _REASONS[language][reason]


def joined(language: Language, parts: list[str]) -> str:
    return say(language, "and").join(parts)
